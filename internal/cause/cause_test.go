package cause

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/hybridlimit/hybrid/exact"
	"github.com/hybridlimit/hybrid/syncer"
)

// reply is an error reply of a server.
type reply string

func (r reply) Error() string { return string(r) }
func (r reply) RedisError()   {}

// secretHost and the like are in the text of errors and must not be in a cause.
const secretHost, secretUser = "redis.internal", "alice"

// atHost is what a network makes of an error.
func atHost(op string, err error) error {
	addr := &net.TCPAddr{IP: net.IPv4(10, 0, 0, 1), Port: 6379}
	return &net.OpError{Op: op, Net: "tcp", Addr: addr, Source: addr, Err: err}
}

func sys(call string, no syscall.Errno) error { return os.NewSyscallError(call, no) }

func TestCauses(t *testing.T) {
	for _, c := range []struct {
		err  error
		want string
	}{
		{nil, "unknown"},
		{atHost("dial", sys("connect", syscall.ECONNREFUSED)), "connection refused"},
		{atHost("read", sys("read", syscall.ECONNRESET)), "connection reset"},
		{atHost("write", sys("write", syscall.EPIPE)), "connection reset"},
		{atHost("dial", sys("connect", syscall.EHOSTUNREACH)), "unreachable"},
		{atHost("dial", sys("socket", syscall.EMFILE)), "too many open files"},
		{atHost("read", os.ErrDeadlineExceeded), "timeout"},
		{atHost("dial", &timeoutError{}), "timeout"},
		{atHost("dial", errors.New("no way to 10.0.0.1")), "no connection"},
		{atHost("dial", &net.DNSError{Err: "no such host", Name: secretHost, Server: "10.0.0.1:53"}), "name resolution"},
		{fmt.Errorf("redis: %w: %s", context.DeadlineExceeded, secretHost), "timeout"},
		{context.Canceled, "cancelled"},
		{io.EOF, "connection closed"},
		{fmt.Errorf("writing to alice: %w", io.ErrClosedPipe), "connection closed"},
		{fmt.Errorf("reading from 10.0.0.1: %w", net.ErrClosed), "connection closed"},

		{fmt.Errorf("%s: %w", secretHost, x509.HostnameError{Certificate: &x509.Certificate{}, Host: secretHost}), "TLS"},
		{&tls.CertificateVerificationError{Err: x509.UnknownAuthorityError{}}, "TLS"},
		{tls.RecordHeaderError{Msg: "first record does not look like a TLS handshake"}, "TLS"},
		{atHost("remote error", tls.AlertError(42)), "TLS"},

		{redis.ErrClosed, "client closed"},
		{redis.ErrPoolTimeout, "no free connection in the pool"},
		{redis.ErrPoolExhausted, "no free connection in the pool"},

		{reply("MOVED 123 10.0.0.1:6379"), "reply MOVED"},
		{reply("NOPERM User alice has no permissions to run the 'evalsha' command"), "reply NOPERM"},
		{reply("ERR The user executing the script can't run this command or subcommand script: f0, on @user_script:17."), "reply NOPERM"},
		{reply("ERR Protocol error: unauthenticated multibulk length"), "reply NOAUTH"},
		{reply("ERR This instance has cluster support disabled"), "no cluster"},
		{reply("WRONGPASS invalid username-password pair or user is disabled."), "reply WRONGPASS"},
		{reply("OOM command not allowed when used memory > 'maxmemory'."), "reply OOM"},
		{reply("ERR Error running script (call to f_1): @user_script:7: -OOM command not allowed"), "reply OOM"},
		{reply("READONLY You can't write against a read only replica."), "reply READONLY"},
		{reply("LOADING Redis is loading the dataset in memory"), "reply LOADING"},
		{reply("BUSY Redis is busy running a script."), "reply BUSY"},
		{reply("CLUSTERDOWN Hash slot not served"), "reply CLUSTERDOWN"},
		{reply("ERR max number of clients reached"), "reply max clients"},
		{fmt.Errorf("hybrid: %w", reply("WRONGTYPE Operation against a key holding the wrong kind of value")), "reply WRONGTYPE"},
		{reply("upstream redis.internal for alice is gone"), "reply ERR"},
		{reply(""), "reply ERR"},

		{fmt.Errorf("%w: %d", exact.ErrShardDown, 1), "a shard of the ring is down"},
		{fmt.Errorf("at redis.internal: %w", errors.New("redis: all ring shards are down")), "all shards of the ring are down"},

		{errors.New("alice was here"), "*errors.errorString"},
		{fmt.Errorf("on redis.internal: %w", errors.New("alice was here")), "*errors.errorString"},
	} {
		got := Of(c.err)
		if got != c.want {
			t.Errorf("%v: %q, want %q", c.err, got, c.want)
		}
		for _, secret := range []string{"10.0.0.1", secretHost, secretUser} {
			if strings.Contains(got, secret) {
				t.Errorf("%v: the cause %q tells %q", c.err, got, secret)
			}
		}
	}
}

type timeoutError struct{}

func (*timeoutError) Error() string   { return "i/o timeout at redis.internal" }
func (*timeoutError) Timeout() bool   { return true }
func (*timeoutError) Temporary() bool { return true }

// Whatever a server says, its cause is one of a few.
func FuzzReplyCause(f *testing.F) {
	for _, seed := range []string{"", "ERR", "MOVED 1 10.0.0.1:1", "-OOM", "oom", "OOMOOM", "NOPERM alice"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		got := strings.TrimPrefix(replyCause(text), "reply ")
		if got == "max clients" || got == "ERR" {
			return
		}
		for _, code := range codes {
			if got == code {
				return
			}
		}
		t.Errorf("%q has the cause %q", text, got)
	})
}

// Errors of our own that a node may meet have a cause in words, whatever their texts
// are: each that is declared where they are made is known here.
func TestOwnErrorsHaveCauses(t *testing.T) {
	causes := map[string]knownCause{
		"ErrTimeout":   {syncer.ErrTimeout, "timeout"},
		"ErrDown":      {syncer.ErrDown, "not sent: Redis does not answer"},
		"ErrSlow":      {syncer.ErrSlow, "slow: more than one call in twenty took longer than StoreTimeout"},
		"ErrShardDown": {exact.ErrShardDown, "a shard of the ring is down"},
		"ErrReply":     {exact.ErrReply, "unexpected reply"},
		"ErrHook":      {exact.ErrHook, "a hook of the client panicked"},
	}
	for name, k := range causes {
		for _, err := range []error{k.err, fmt.Errorf("at %s: %w", secretHost, k.err)} {
			if got := Of(err); got != k.cause {
				t.Errorf("%s has the cause %q, want %q", name, got, k.cause)
			}
		}
	}
	unlogged := []string{"ErrClosed", "ErrUnsettled", "ErrInvalidLimit", "ErrInvalidCost", "ErrInvalidOption", "errRefused"}
	declared := regexp.MustCompile(`\b([eE]rr[A-Z]\w*) += errors\.New\(`)
	for _, dir := range []string{"syncer", "exact", "internal/batch", "internal/fleet"} {
		files, _ := filepath.Glob(filepath.Join("../..", dir, "*.go"))
		for _, file := range files {
			if strings.HasSuffix(file, "_test.go") {
				continue
			}
			for _, m := range declared.FindAllStringSubmatch(readFile(t, file), -1) {
				if _, known := causes[m[1]]; !known && !slices.Contains(unlogged, m[1]) {
					t.Errorf("%s of %s has no cause", m[1], file)
				}
			}
		}
	}
}

// Of the client's errors without a name we know the texts: they are the client's still.
func TestTextsOfTheClient(t *testing.T) {
	file, _ := runtime.FuncForPC(reflect.ValueOf(redis.NewClient).Pointer()).FileLine(0)
	dir := filepath.Dir(file)
	if _, err := os.Stat(file); err != nil {
		t.Skip("the client's source is not here")
	}
	var source strings.Builder
	for _, pattern := range []string{"*.go", "internal/pool/*.go"} {
		files, _ := filepath.Glob(filepath.Join(dir, pattern))
		for _, file := range files {
			source.WriteString(readFile(t, file))
		}
	}
	for text, cause := range constantText {
		if !strings.Contains(source.String(), `errors.New("`+text+`")`) {
			t.Errorf("the client does not say %q any more", text)
		}
		if got := Of(fmt.Errorf("at %s: %w", secretHost, errors.New(text))); got != cause {
			t.Errorf("%q has the cause %q, want %q", text, got, cause)
		}
	}
}

func readFile(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}
