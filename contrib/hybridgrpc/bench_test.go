package hybridgrpc

import (
	"context"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/peer"

	"github.com/hybridlimit/hybrid"
	"github.com/hybridlimit/hybrid/httplimit"
	"github.com/hybridlimit/hybrid/internal/redistest"
)

// transport is a call's stream that can be used again, as a server's own is not part
// of what an interceptor costs.
type transport struct{ trailer metadata.MD }

func (t *transport) Method() string                  { return say }
func (t *transport) SetHeader(metadata.MD) error     { return nil }
func (t *transport) SendHeader(metadata.MD) error    { return nil }
func (t *transport) SetTrailer(md metadata.MD) error { t.trailer = md; return nil }

// rig is a limiter whose keys are on slices that last, so that what is measured is
// the interceptor, and one that denies all from memory.
type rig struct {
	limiter, nothing *hybrid.Limiter
	ctx              context.Context
	trailer          *transport
}

const apiKey = "key-1000000000a"

func newRig(tb testing.TB) *rig {
	tb.Helper()
	node, err := hybrid.New(redistest.MiniClient(tb), &hybrid.Options{Logger: silent, StoreTimeout: time.Second})
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { _ = node.Close() })
	r := &rig{trailer: &transport{}}
	r.limiter = newLimiter(tb, node, "bench", hybrid.Per(1<<45, time.Hour), &hybrid.LimiterOptions{Accuracy: hybrid.Strict})
	r.nothing = newLimiter(tb, node, "nothing", hybrid.PerHour(0), nil)
	r.ctx = metadata.NewIncomingContext(ctx, metadata.Pairs("x-api-key", apiKey, "user-agent", "grpc-go/1", ":authority", "api"))
	r.ctx = peer.NewContext(r.ctx, &peer.Peer{Addr: tcp("203.0.113.9")})
	r.ctx = grpc.NewContextWithServerTransportStream(r.ctx, r.trailer)
	for _, key := range []string{apiKey, "203.0.113.9"} {
		r.warm(tb, key)
	}
	return r
}

// warm asks until a slice is large enough for what follows.
func (r *rig) warm(tb testing.TB, key string) {
	tb.Helper()
	for range 40 {
		if res, err := r.limiter.AllowN(ctx, key, 1<<24); err != nil || !res.Allowed {
			tb.Fatalf("%+v, %v", res, err)
		}
		time.Sleep(2 * time.Millisecond)
	}
	if res, err := r.limiter.Allow(ctx, key); err != nil || res.Path != hybrid.PathSlice {
		tb.Fatalf("%+v, %v; want a slice", res, err)
	}
}

func done(context.Context, any) (any, error) { return nil, nil }

// call makes a function that passes one call through an interceptor to a handler that
// does nothing.
func (r *rig) call(interceptor grpc.UnaryServerInterceptor) func() {
	info := &grpc.UnaryServerInfo{FullMethod: say}
	return func() { _, _ = interceptor(r.ctx, nil, info, done) }
}

func (r *rig) interceptor(tb testing.TB, l *hybrid.Limiter, opts *ServerOptions) func() {
	tb.Helper()
	unary, err := UnaryServer(l, opts)
	if err != nil {
		tb.Fatal(err)
	}
	return r.call(unary)
}

// bare is an interceptor that does nothing.
func bare(ctx context.Context, req any, _ *grpc.UnaryServerInfo, handler grpc.UnaryHandler) (any, error) {
	return handler(ctx, req)
}

// What the interceptor itself allocates is the key and the fields: nothing for a call
// that shows none and whose key is there as it is.
func TestNothingIsAllocatedBesideKeysAndFields(t *testing.T) {
	r := newRig(t)
	call := r.interceptor(t, r.limiter, &ServerOptions{Key: Method(), Headers: httplimit.NoHeaders})
	r.warm(t, say)
	if n := testing.AllocsPerRun(1000, call); n != 0 {
		t.Errorf("%v allocations", n)
	}
	if r.trailer.trailer != nil {
		t.Errorf("%v", r.trailer.trailer)
	}
	r.interceptor(t, r.limiter, &ServerOptions{Key: Method()})()
	wantFields(t, r.trailer.trailer, fieldLimit, "35184372088832")
}

// BenchmarkUnaryServer is what an interceptor adds to a call, beside one that does
// nothing.
func BenchmarkUnaryServer(b *testing.B) {
	r := newRig(b)
	byKey := Metadata("x-api-key")
	for _, one := range []struct {
		name string
		call func()
	}{
		{"bare interceptor", r.call(bare)},
		{"bare Allow", func() { _, _ = r.limiter.Allow(r.ctx, apiKey) }},
		{"peer/no fields", r.interceptor(b, r.limiter, &ServerOptions{Headers: httplimit.NoHeaders})},
		{"metadata/no fields", r.interceptor(b, r.limiter, &ServerOptions{Headers: httplimit.NoHeaders, Key: byKey})},
		{"metadata/x-ratelimit", r.interceptor(b, r.limiter, &ServerOptions{Key: byKey})},
		{"metadata/ietf", r.interceptor(b, r.limiter, &ServerOptions{Headers: httplimit.IETF, Key: byKey})},
		{"two limits", r.interceptor(b, r.limiter, &ServerOptions{Key: byKey, More: []Check{{Limiter: r.limiter, Key: PeerIP(nil)}}})},
		{"denied", r.interceptor(b, r.nothing, nil)},
	} {
		b.Run(one.name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				one.call()
			}
		})
	}
}

// BenchmarkCall is a whole call over the loopback, with and without the interceptor.
func BenchmarkCall(b *testing.B) {
	r := newRig(b)
	for name, server := range map[string][]grpc.ServerOption{
		"bare":    nil,
		"limited": interceptors(b, r.limiter, &ServerOptions{Key: Fixed(apiKey)}),
		"denied":  interceptors(b, r.nothing, nil),
	} {
		b.Run(name, func(b *testing.B) {
			c := listen(b, server)
			b.ReportAllocs()
			for b.Loop() {
				if a := c.say(ctx, ""); (a.err == nil) != (name != "denied") {
					b.Fatal(a.err)
				}
			}
		})
	}
}
