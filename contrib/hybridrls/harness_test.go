package hybridrls

import (
	"context"
	"io"
	"log/slog"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"
	commonv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/common/ratelimit/v3"
	rlsv3 "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"
	typev3 "github.com/envoyproxy/go-control-plane/envoy/type/v3"
	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/logging"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/hybridlimit/hybrid"
	"github.com/hybridlimit/hybrid/internal/redistest"
)

// The client's own log of broken connections is what the tests ask for.
func init() { logging.Disable() }

const (
	ok        = rlsv3.RateLimitResponse_OK
	overLimit = rlsv3.RateLimitResponse_OVER_LIMIT
)

var silent = slog.New(slog.NewTextHandler(io.Discard, nil))

// gateway is a client of a service on loopback, which counts in an embedded Redis.
// Limits of the tests are per hour or day: no test waits for one.
type gateway struct {
	t      *testing.T
	mini   *miniredis.Miniredis
	node   *hybrid.Node
	server *Server
	conn   *grpc.ClientConn
	client rlsv3.RateLimitServiceClient
}

func newGateway(t *testing.T, rules string, opts *Options) *gateway {
	t.Helper()
	g := &gateway{t: t, mini: redistest.Mini(t)}
	rdb := redis.NewClient(&redis.Options{Addr: g.mini.Addr()})
	t.Cleanup(func() { _ = rdb.Close() })
	var err error
	// Nothing that a test expects depends on how busy the machine is.
	if g.node, err = hybrid.New(rdb, &hybrid.Options{StoreTimeout: time.Second, Logger: silent}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = g.node.Close() })
	if opts == nil {
		opts = &Options{}
	}
	if opts.Logger == nil {
		opts.Logger = silent
	}
	if g.server, err = New(g.node, mustParse(t, rules), opts); err != nil {
		t.Fatal(err)
	}
	g.conn = serveOn(t, g.server)
	g.client = rlsv3.NewRateLimitServiceClient(g.conn)
	return g
}

// serveOn serves on a free port of loopback until the test ends.
func serveOn(t *testing.T, s *Server) *grpc.ClientConn {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	g := grpc.NewServer()
	s.Register(g)
	go func() { _ = g.Serve(l) }()
	t.Cleanup(g.Stop)
	conn, err := grpc.NewClient(l.Addr().String(), grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	return conn
}

func mustParse(t testing.TB, rules string) *Rules {
	t.Helper()
	r, err := Parse([]byte(rules))
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// ask sends the descriptors to the domain "edge".
func (g *gateway) ask(ds ...*commonv3.RateLimitDescriptor) *rlsv3.RateLimitResponse {
	g.t.Helper()
	return g.send(&rlsv3.RateLimitRequest{Domain: "edge", Descriptors: ds})
}

func (g *gateway) send(req *rlsv3.RateLimitRequest) *rlsv3.RateLimitResponse {
	g.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	resp, err := g.client.ShouldRateLimit(ctx, req)
	if err != nil {
		g.t.Fatalf("%v: %v", req, err)
	}
	if len(resp.GetStatuses()) != len(req.GetDescriptors()) {
		g.t.Fatalf("%d statuses for %d descriptors", len(resp.GetStatuses()), len(req.GetDescriptors()))
	}
	return resp
}

// want asks a number of times, and fails unless all answers have a code.
func (g *gateway) want(code rlsv3.RateLimitResponse_Code, times int, ds ...*commonv3.RateLimitDescriptor) (last *rlsv3.RateLimitResponse) {
	g.t.Helper()
	for i := range times {
		last = g.ask(ds...)
		if last.GetOverallCode() != code {
			g.t.Fatalf("request %d of %d with %v: %v, want %v", i+1, times, ds, last.GetOverallCode(), code)
		}
	}
	return last
}

// left returns what remains of a descriptor's limit, without charging it.
func (g *gateway) left(d *commonv3.RateLimitDescriptor) uint32 {
	g.t.Helper()
	return g.ask(hits(d, 0)).GetStatuses()[0].GetLimitRemaining()
}

func (g *gateway) setRules(rules string) {
	g.t.Helper()
	if err := g.server.SetRules(mustParse(g.t, rules)); err != nil {
		g.t.Fatal(err)
	}
}

// d is a descriptor of entries that are written as key=value.
func d(entries ...string) *commonv3.RateLimitDescriptor {
	one := &commonv3.RateLimitDescriptor{}
	for _, e := range entries {
		key, value, _ := strings.Cut(e, "=")
		one.Entries = append(one.Entries, &commonv3.RateLimitDescriptor_Entry{Key: key, Value: value})
	}
	return one
}

// hits is a descriptor that says what it costs.
func hits(one *commonv3.RateLimitDescriptor, n uint64) *commonv3.RateLimitDescriptor {
	return &commonv3.RateLimitDescriptor{Entries: one.Entries, Limit: one.Limit, HitsAddend: wrapperspb.UInt64(n)}
}

// refund is a descriptor that gives hits back.
func refund(one *commonv3.RateLimitDescriptor, n uint64) *commonv3.RateLimitDescriptor {
	back := hits(one, n)
	back.IsNegativeHits = true
	return back
}

// limited is a descriptor that brings its limit along.
func limited(one *commonv3.RateLimitDescriptor, n uint32, unit typev3.RateLimitUnit) *commonv3.RateLimitDescriptor {
	return &commonv3.RateLimitDescriptor{
		Entries: one.Entries,
		Limit:   &commonv3.RateLimitDescriptor_RateLimitOverride{RequestsPerUnit: n, Unit: unit},
	}
}

// ruleNames are the rules that the statuses name, in order; "" where none is named.
func ruleNames(resp *rlsv3.RateLimitResponse) (names []string) {
	for _, s := range resp.GetStatuses() {
		names = append(names, s.GetCurrentLimit().GetName())
	}
	return names
}
