package hybridgrpc

import (
	"context"
	"log/slog"
	"net"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"
	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/grpc/test/bufconn"

	"github.com/hybridlimit/hybrid"
	"github.com/hybridlimit/hybrid/internal/redistest"
)

var (
	silent = slog.New(slog.DiscardHandler)
	ctx    = context.Background()
)

// world is a node on an embedded Redis, and a real server with a real client, in the
// virtual time of a synctest bubble, which begins at midnight UTC.
type world struct {
	t      *testing.T
	mini   *miniredis.Miniredis
	node   *hybrid.Node
	remote net.Addr // where the server sees calls come from
	echo   *echo    // what the servers run
}

func inBubble(t *testing.T, test func(w *world)) {
	t.Helper()
	redistest.InBubble(t, func(t *testing.T, mini *miniredis.Miniredis) {
		w := &world{t: t, mini: mini, echo: &echo{}, remote: &net.TCPAddr{IP: net.IPv4(203, 0, 113, 9), Port: 1234}}
		var err error
		if w.node, err = hybrid.New(redistest.NewLink(mini.Dial).Client(t), &hybrid.Options{Logger: silent}); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = w.node.Close() }) // some tests have broken its Redis
		test(w)
	})
}

// breakRedis makes each call fail, as a server that is starting does.
func (w *world) breakRedis() { w.mini.SetError(redistest.Loading) }

func (w *world) mendRedis() { w.mini.SetError("") }

func (w *world) limiter(name string, l hybrid.Limit, opts *hybrid.LimiterOptions) *hybrid.Limiter {
	w.t.Helper()
	return newLimiter(w.t, w.node, name, l, opts)
}

func newLimiter(t testing.TB, node *hybrid.Node, name string, l hybrid.Limit, opts *hybrid.LimiterOptions) *hybrid.Limiter {
	t.Helper()
	lim, err := node.Limiter(name, l, opts)
	if err != nil {
		t.Fatal(err)
	}
	return lim
}

// strict is a limiter that admits exactly its limit.
func (w *world) strict(name string, l hybrid.Limit) *hybrid.Limiter {
	w.t.Helper()
	return w.limiter(name, l, &hybrid.LimiterOptions{Accuracy: hybrid.Strict})
}

// serve is a client of an echo server behind a limiter.
func (w *world) serve(l *hybrid.Limiter, opts *ServerOptions, dial ...grpc.DialOption) *caller {
	w.t.Helper()
	return w.connect(interceptors(w.t, l, opts), dial...)
}

// interceptors are the server options that put a limiter before all calls.
func interceptors(t testing.TB, l *hybrid.Limiter, opts *ServerOptions) []grpc.ServerOption {
	t.Helper()
	unary, err := UnaryServer(l, opts)
	if err != nil {
		t.Fatal(err)
	}
	stream, err := StreamServer(l, opts)
	if err != nil {
		t.Fatal(err)
	}
	return []grpc.ServerOption{grpc.ChainUnaryInterceptor(unary), grpc.ChainStreamInterceptor(stream)}
}

// connect is a client of an echo server with options.
func (w *world) connect(server []grpc.ServerOption, dial ...grpc.DialOption) *caller {
	w.t.Helper()
	pipe := bufconn.Listen(1 << 16)
	srv := grpc.NewServer(server...)
	srv.RegisterService(&echoDesc, w.echo)
	go func() { _ = srv.Serve(&namedListener{Listener: pipe, remote: w.remote}) }()
	cc, err := grpc.NewClient("passthrough:///echo", append([]grpc.DialOption{
		grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) { return pipe.DialContext(ctx) }),
	}, dial...)...)
	if err != nil {
		w.t.Fatal(err)
	}
	w.t.Cleanup(srv.Stop)
	w.t.Cleanup(func() { _ = cc.Close() })
	return &caller{cc}
}

// namedListener lets connections come from an address.
type namedListener struct {
	net.Listener
	remote net.Addr
}

func (l *namedListener) Accept() (net.Conn, error) {
	conn, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	return &namedConn{Conn: conn, remote: l.remote}, nil
}

type namedConn struct {
	net.Conn
	remote net.Addr
}

func (c *namedConn) RemoteAddr() net.Addr { return c.remote }

// with is a context with metadata for the server, given as name and value in turn.
func with(pairs ...string) context.Context { return metadata.AppendToOutgoingContext(ctx, pairs...) }

// details are those of a status, by kind.
type details struct {
	code    codes.Code
	message string
	retry   *errdetails.RetryInfo
	quota   *errdetails.QuotaFailure
}

func detailsOf(t *testing.T, err error) details {
	t.Helper()
	st, ok := status.FromError(err)
	if !ok {
		t.Fatalf("%v is no status", err)
	}
	d := details{code: st.Code(), message: st.Message()}
	for _, one := range st.Details() {
		switch one := one.(type) {
		case *errdetails.RetryInfo:
			d.retry = one
		case *errdetails.QuotaFailure:
			d.quota = one
		default:
			t.Errorf("a detail of type %T: %v", one, one)
		}
	}
	return d
}

// wantDenied fails the test unless an error is a denial by a limit. It returns after
// how long it says that a retry passes.
func wantDenied(t *testing.T, err error, limit string) time.Duration {
	t.Helper()
	d := detailsOf(t, err)
	if d.code != codes.ResourceExhausted || d.quota == nil || len(d.quota.Violations) != 1 || d.quota.Violations[0].Subject != limit || d.quota.Violations[0].Description == "" {
		t.Errorf("%v with %v, want ResourceExhausted by %q", err, d.quota, limit)
	}
	if d.retry == nil {
		return 0
	}
	return d.retry.RetryDelay.AsDuration()
}

func wantCode(t *testing.T, err error, want codes.Code) {
	t.Helper()
	if got := status.Code(err); got != want {
		t.Errorf("%v: %v, want %v", err, got, want)
	}
}

// wantFields fails the test unless metadata has values, given as name and value in
// turn. A value of "" means that the field is absent.
func wantFields(t *testing.T, md metadata.MD, fields ...string) {
	t.Helper()
	for i := 0; i < len(fields); i += 2 {
		name, want := fields[i], fields[i+1]
		got := md[name]
		switch {
		case want == "" && len(got) > 0:
			t.Errorf("%s is %q, want none", name, got)
		case want != "" && (len(got) != 1 || got[0] != want):
			t.Errorf("%s is %q, want %q", name, got, want)
		}
	}
}
