package main

import (
	"bufio"
	"context"
	"errors"
	"flag"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	commonv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/common/ratelimit/v3"
	rlsv3 "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	healthv1 "google.golang.org/grpc/health/grpc_health_v1"

	"github.com/hybridlimit/hybrid/internal/redistest"
)

// beMain makes a copy of the test program be the program itself.
const beMain = "HYBRIDRLS_TEST_BE_MAIN"

func TestMain(m *testing.M) {
	if os.Getenv(beMain) != "" {
		main()
	}
	os.Exit(m.Run())
}

// program is a running copy, and what it has said.
type program struct {
	t    *testing.T
	cmd  *exec.Cmd
	conn *grpc.ClientConn

	mu   sync.Mutex
	said strings.Builder
	read chan struct{} // closed when it says no more
}

var address = regexp.MustCompile(`serving" address=(\S+)`)

// start runs the program on a free port until it serves.
func start(t *testing.T, redisURL string, args ...string) *program {
	t.Helper()
	p := &program{t: t, read: make(chan struct{})}
	p.cmd = exec.Command(os.Args[0], append([]string{"-listen", "127.0.0.1:0"}, args...)...)
	p.cmd.Env = append(os.Environ(), beMain+"=1", "REDIS_URL="+redisURL)
	stderr, err := p.cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := p.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = p.cmd.Process.Kill() })
	serving := make(chan string, 1)
	go p.listen(stderr, serving)
	select {
	case addr := <-serving:
		if p.conn, err = grpc.NewClient(addr, grpc.WithTransportCredentials(insecure.NewCredentials())); err != nil {
			t.Fatal(err)
		}
	case <-p.read:
		t.Fatalf("it ended:\n%s", p.log())
	case <-time.After(20 * time.Second):
		t.Fatalf("it does not serve:\n%s", p.log())
	}
	t.Cleanup(func() { _ = p.conn.Close() })
	return p
}

func (p *program) listen(r io.Reader, serving chan<- string) {
	defer close(p.read)
	for lines := bufio.NewScanner(r); lines.Scan(); {
		p.mu.Lock()
		p.said.WriteString(lines.Text() + "\n")
		p.mu.Unlock()
		if m := address.FindStringSubmatch(lines.Text()); m != nil {
			serving <- m[1]
		}
	}
}

func (p *program) log() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.said.String()
}

// waitFor waits until it has said something.
func (p *program) waitFor(what string) {
	p.t.Helper()
	for end := time.Now().Add(20 * time.Second); !strings.Contains(p.log(), what); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(end) {
			p.t.Fatalf("it did not say %q:\n%s", what, p.log())
		}
	}
}

// end waits for the end, and fails unless it is a good one.
func (p *program) end() {
	p.t.Helper()
	<-p.read
	if err := p.cmd.Wait(); err != nil {
		p.t.Fatalf("it ended with %v:\n%s", err, p.log())
	}
}

func (p *program) ask(ctx context.Context, key string) (*rlsv3.RateLimitResponse, error) {
	return p.send(ctx, "edge", "api_key", key)
}

func (p *program) send(ctx context.Context, domain, key, value string) (*rlsv3.RateLimitResponse, error) {
	return rlsv3.NewRateLimitServiceClient(p.conn).ShouldRateLimit(ctx, &rlsv3.RateLimitRequest{
		Domain: domain,
		Descriptors: []*commonv3.RateLimitDescriptor{{
			Entries: []*commonv3.RateLimitDescriptor_Entry{{Key: key, Value: value}},
		}},
	})
}

func (p *program) want(code rlsv3.RateLimitResponse_Code, times int, key string) {
	p.t.Helper()
	for range times {
		if resp, err := p.ask(p.t.Context(), key); err != nil || resp.GetOverallCode() != code {
			p.t.Fatalf("%v, %v: want %v", resp.GetOverallCode(), err, code)
		}
	}
}

func rulesFile(t *testing.T, limit string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "rules.yaml")
	rewrite(t, path, limit)
	return path
}

func rewrite(t *testing.T, path, limit string) {
	t.Helper()
	text := "domain: edge\nrules:\n- name: per-key\n  match: [{key: api_key}]\n  accuracy: exact\n  limit: " + limit + "\n"
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// The program's life: it warns of its embedded Redis, is healthy, takes a new file,
// leaves a bad one and says in which line it is bad, and ends at SIGTERM with all
// requests answered.
func TestLife(t *testing.T) {
	redistest.NeedMini(t)
	path := rulesFile(t, "3/h")
	p := start(t, "", "-config", path, "-headers")
	p.waitFor("REDIS_URL IS NOT SET")
	for _, service := range []string{"", "envoy.service.ratelimit.v3.RateLimitService"} {
		h, err := healthv1.NewHealthClient(p.conn).Check(t.Context(), &healthv1.HealthCheckRequest{Service: service})
		if err != nil || h.GetStatus() != healthv1.HealthCheckResponse_SERVING {
			t.Errorf("the health of %q is %v, %v", service, h.GetStatus(), err)
		}
	}
	p.want(rlsv3.RateLimitResponse_OK, 3, "k")
	p.want(rlsv3.RateLimitResponse_OVER_LIMIT, 2, "k")
	if resp, err := p.ask(t.Context(), "k"); err != nil || len(resp.GetResponseHeadersToAdd()) != 4 {
		t.Errorf("%v, %v: want four headers", resp.GetResponseHeadersToAdd(), err)
	}

	rewrite(t, path, "3 per hour")
	p.waitFor(`line 6: rules[0].limit: `)
	p.want(rlsv3.RateLimitResponse_OVER_LIMIT, 1, "k")
	rewrite(t, path, "5/h")
	p.waitFor("new rules are in force")
	p.want(rlsv3.RateLimitResponse_OK, 2, "k")
	p.want(rlsv3.RateLimitResponse_OVER_LIMIT, 1, "k")

	// Those that are under way when the signal comes are answered too; who asks later
	// finds nobody who listens.
	var under sync.WaitGroup
	var answered atomic.Int64
	var leaving atomic.Bool
	for range 4 {
		under.Go(func() {
			for {
				early := !leaving.Load()
				_, err := p.ask(t.Context(), "load")
				if err == nil {
					answered.Add(1)
					continue
				}
				if early && !strings.Contains(err.Error(), "connection refused") && !strings.Contains(err.Error(), "server preface") {
					t.Errorf("a request that was made before SIGTERM: %v", err)
				}
				return
			}
		})
	}
	for answered.Load() < 100 {
		time.Sleep(time.Millisecond)
	}
	leaving.Store(true)
	if err := p.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	p.end()
	under.Wait()
	p.waitFor("hybridrls: ended")
}

// Two servers of one Redis share its limits, and the end of one leaves what was
// used to the other.
func TestTwoServersShareALimit(t *testing.T) {
	url := "redis://" + redistest.Start(t).Addr
	path := rulesFile(t, "10/h")
	a := start(t, url, "-config", path, "-store-timeout", "1s")
	b := start(t, url, "-config", path, "-store-timeout", "1s")
	a.want(rlsv3.RateLimitResponse_OK, 4, "k")
	b.want(rlsv3.RateLimitResponse_OK, 4, "k")
	if err := a.cmd.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	a.end()
	b.want(rlsv3.RateLimitResponse_OK, 2, "k")
	b.want(rlsv3.RateLimitResponse_OVER_LIMIT, 2, "k")
	if log := b.log(); strings.Contains(log, "REDIS_URL") {
		t.Errorf("it warns of a Redis that it has:\n%s", log)
	}
}

// What cannot be served is said, and nothing is served.
func TestWhatCannotBeServed(t *testing.T) {
	good := rulesFile(t, "1/s")
	bad := rulesFile(t, "often")
	busy, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer busy.Close()
	taken := busy.Addr().String()
	for _, c := range []struct {
		redisURL, what string
		args           []string
	}{
		{"", "flag -config: missing", nil},
		{"", "unexpected argument", []string{"-config", good, "more"}},
		{"", "not defined: -confg", []string{"-confg", good}},
		{"", "flag -drain: -1s, allowed 0s to 1h", []string{"-config", good, "-drain", "-1s"}},
		{"", "Options.StoreTimeout: 1h0m0s, allowed 1ms to 10s", []string{"-config", good, "-store-timeout", "1h"}},
		{"", "invalid rules: " + bad + ": line 6: rules[0].limit", []string{"-config", bad}},
		{"", "line 6: rules[0].limit", []string{"-config", bad, "-check"}},
		{"", "no such file", []string{"-config", good + ".missing"}},
		{"http://localhost", "REDIS_URL: ", []string{"-config", good}},
		{"", "flag -listen: listen tcp", []string{"-config", good, "-listen", "127.0.0.1:http-or-not"}},
		{"", "flag -admin: listen tcp", []string{"-config", good, "-listen", "127.0.0.1:0", "-admin", "127.0.0.1:http-or-not"}},
		{"", "flag -admin: listen tcp " + taken, []string{"-config", good, "-listen", "127.0.0.1:0", "-admin", taken}},
	} {
		err := run(t.Context(), c.args, c.redisURL, io.Discard)
		if err == nil || !strings.Contains(err.Error(), c.what) {
			t.Errorf("%q: %v, want %q", c.args, err, c.what)
		}
	}
	var out strings.Builder
	if err := run(t.Context(), []string{"-config", "../../example.yaml", "-check"}, "", &out); err != nil || !strings.Contains(out.String(), "no mistakes") {
		t.Errorf("-check of the example: %q, %v", out.String(), err)
	}
	out.Reset()
	if err := run(t.Context(), []string{"-h"}, "", &out); !errors.Is(err, flag.ErrHelp) || !strings.Contains(out.String(), "-store-timeout") {
		t.Errorf("-h: %q, %v", out.String(), err)
	}
}

// A mistake is said with the program's name once, and the file, the line and the field.
func TestTheNameIsSaidOnce(t *testing.T) {
	bad := rulesFile(t, "often")
	check := exec.Command(os.Args[0], "-config", bad, "-check")
	check.Env = append(os.Environ(), beMain+"=1")
	said, err := check.CombinedOutput()
	var exit *exec.ExitError
	if !errors.As(err, &exit) || exit.ExitCode() != 1 {
		t.Errorf("%v, want exit code 1", err)
	}
	if !strings.HasPrefix(string(said), "hybridrls: invalid rules: "+bad+": line 6: rules[0].limit: ") {
		t.Errorf("it said %q", said)
	}
}

// Who tries the program waits as long as the embedded Redis takes, and who serves no
// longer than the gateway does; what is asked for holds in both.
func TestStoreTimeout(t *testing.T) {
	for _, c := range []struct {
		redisURL string
		want     time.Duration
		args     []string
	}{
		{"", time.Second, nil},
		{"", 30 * time.Millisecond, []string{"-store-timeout", "30ms"}},
		{"redis://localhost", 10 * time.Millisecond, nil},
		{"redis://localhost", 30 * time.Millisecond, []string{"-store-timeout", "30ms"}},
	} {
		got, err := parseFlags(append([]string{"-config", "rules.yaml"}, c.args...), io.Discard)
		if err != nil || got.storeTimeout(c.redisURL) != c.want {
			t.Errorf("%q with %q: %v, %v, want %v", c.args, c.redisURL, got.storeTimeout(c.redisURL), err, c.want)
		}
	}
}
