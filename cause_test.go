package hybrid

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"regexp"
	"strings"
	"syscall"
	"testing"

	"github.com/redis/go-redis/v9"
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

		{fmt.Errorf("%w: %d", errors.New("hybrid: the ring has taken the shard out"), 1), "a shard of the ring is down"},
		{fmt.Errorf("at redis.internal: %w", errors.New("redis: all ring shards are down")), "all shards of the ring are down"},

		{errors.New("alice was here"), "*errors.errorString"},
		{fmt.Errorf("on redis.internal: %w", errors.New("alice was here")), "*errors.errorString"},
	} {
		got := causeOf(c.err)
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

// Errors of our own that a node may meet have a cause in words: their texts are
// looked for where they are made.
func TestOwnErrorsHaveCauses(t *testing.T) {
	own := regexp.MustCompile(`(err[A-Z]\w*) += errors\.New\("(.*)"\)`)
	seen := 0
	for _, file := range []string{"syncer/errors.go", "exact/errors.go", "exact/lanes.go"} {
		for _, m := range own.FindAllStringSubmatch(readFile(t, file), -1) {
			if m[1] == "errUnsettled" {
				continue // is returned by Close and Flush, and logged nowhere
			}
			seen++
			if got := causeOf(errors.New(m[2])); strings.HasPrefix(got, "*") {
				t.Errorf("%s has the cause %q", m[1], got)
			}
		}
	}
	if seen < 5 {
		t.Errorf("%d errors found", seen)
	}
}
