package hybridrls

import (
	"bytes"
	"context"
	"fmt"
	"runtime"
	"strings"
	"testing"
	"time"

	commonv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/common/ratelimit/v3"
	rlsv3 "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	"github.com/hybridlimit/hybrid"
)

// What only a gateway's configuration can cause is refused, in a moment.
func TestRequestsThatAreRefused(t *testing.T) {
	g := newGateway(t, twoLimits, nil)
	many := make([]*commonv3.RateLimitDescriptor, 5000)
	for i := range many {
		many[i] = d(fmt.Sprintf("user=%d", i))
	}
	for what, req := range map[string]*rlsv3.RateLimitRequest{
		"no domain":        {Descriptors: many[:1]},
		"no descriptors":   {Domain: "edge"},
		"5000 descriptors": {Domain: "edge", Descriptors: many},
		"101 descriptors":  {Domain: "edge", Descriptors: many[:101]},
	} {
		_, err := g.client.ShouldRateLimit(t.Context(), req)
		if status.Code(err) != codes.InvalidArgument || !strings.Contains(err.Error(), "allowed") {
			t.Errorf("%s: %v, want InvalidArgument and what is allowed", what, err)
		}
	}
	g.want(ok, 1, many[:100]...)
	if st := g.server.Stats(); st.Errors != 4 || st.Allowed != 1 {
		t.Errorf("%+v: want 4 errors", st)
	}
}

// What a client of the gateway can choose is never an error, whatever it is: an
// error is what a gateway lets pass by default.
func TestValuesThatClientsChoose(t *testing.T) {
	g := newGateway(t, `
domain: edge
rules:
- {name: user, match: [{key: user}], limit: 2/h, accuracy: exact}
- {name: pair, match: [{key: user}, {key: user}], limit: 2/h, accuracy: exact}
overrides: {accuracy: exact}
`, nil)
	long := strings.Repeat("x", 1<<20)
	for what, value := range map[string]string{
		"empty": "", "zero bytes": "\x00\x00", "braces": "{user}", "a digest": "#" + strings.Repeat("0", 64),
		"a megabyte": long, "another megabyte": long[1:] + "y", "line ends": "a\r\nSET x y\r\n", "a wildcard": "*",
	} {
		g.want(ok, 2, d("user="+value))
		denied := g.want(overLimit, 1, d("user="+value))
		if name := ruleNames(denied)[0]; name != "user" {
			t.Errorf("%s: %q denied", what, name)
		}
		g.want(ok, 2, d("user="+value, "user=b")) // the same key twice is two entries
		g.want(overLimit, 1, d("user="+value, "user=b"))
		mine := limited(d("user="+value), 1, 1)
		g.want(ok, 1, mine)
	}
	deep := make([]string, 10_000)
	for i := range deep {
		deep[i] = "user=a"
	}
	g.want(ok, 3, d(deep...))
	g.want(ok, 3, &commonv3.RateLimitDescriptor{}, &commonv3.RateLimitDescriptor{Entries: []*commonv3.RateLimitDescriptor_Entry{{}, {}}})
}

// raw sends bytes as they are.
type raw struct{}

func (raw) Marshal(v any) ([]byte, error)      { return v.([]byte), nil }
func (raw) Unmarshal(data []byte, v any) error { *v.(*[]byte) = bytes.Clone(data); return nil }
func (raw) Name() string                       { return "proto" }

// The one exception: what is no UTF-8 is no message, and gRPC refuses it before the
// service sees it. The documentation says so; if it changes, that must.
func TestValuesThatAreNoText(t *testing.T) {
	g := newGateway(t, twoLimits, nil)
	sent, err := proto.Marshal(&rlsv3.RateLimitRequest{Domain: "edge", Descriptors: []*commonv3.RateLimitDescriptor{d("user=abc")}})
	if err != nil {
		t.Fatal(err)
	}
	var reply []byte
	call := func(msg []byte) error {
		return g.conn.Invoke(t.Context(), rlsv3.RateLimitService_ShouldRateLimit_FullMethodName, msg, &reply, grpc.ForceCodec(raw{}))
	}
	if err := call(sent); err != nil {
		t.Fatalf("a text: %v", err)
	}
	if err := call(bytes.Replace(sent, []byte("abc"), []byte("a\xffc"), 1)); status.Code(err) != codes.Internal {
		t.Errorf("no text: %v, want the refusal of gRPC", err)
	}
}

// Called without gRPC, the server meets nil parts too.
func TestNilParts(t *testing.T) {
	g := newGateway(t, twoLimits, nil)
	for _, req := range []*rlsv3.RateLimitRequest{
		nil,
		{},
		{Domain: "edge", Descriptors: []*commonv3.RateLimitDescriptor{nil, {Entries: []*commonv3.RateLimitDescriptor_Entry{nil}}}},
	} {
		if resp, err := g.server.ShouldRateLimit(t.Context(), req); err == nil && resp.GetOverallCode() != ok {
			t.Errorf("%v: %v", req, resp)
		}
	}
}

// Long values take no more memory than short ones: the node keeps their digests.
func TestLongValuesAreNotKept(t *testing.T) {
	g := newGateway(t, oneRule("limit: 1000000/h"), nil)
	const n, size = 200, 50_000
	value := []byte(strings.Repeat("v", size))
	before := heap()
	for i := range n {
		copy(value, fmt.Sprintf("%08d", i))
		g.want(ok, 1, d("user="+string(value)))
		g.want(ok, 1, limited(d("user="+string(value)), 1000, 3))
	}
	if grown := heap() - before; grown > n*size/2 {
		t.Errorf("%d values of %d bytes left %d bytes on the heap", 2*n, size, grown)
	}
}

func heap() int64 {
	runtime.GC()
	runtime.GC() // what pools keep goes with the second one
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

// Calls whose time is over, and calls to a closed server, get the codes that say so.
func TestCodesOfErrors(t *testing.T) {
	g := newGateway(t, twoLimits, nil)
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	req := &rlsv3.RateLimitRequest{Domain: "edge", Descriptors: []*commonv3.RateLimitDescriptor{hits(d("user=a"), 0)}}
	if _, err := g.server.ShouldRateLimit(gone, req); status.Code(err) != codes.Canceled {
		t.Errorf("a caller that left: %v", err)
	}
	late, cancel := context.WithDeadline(t.Context(), time.Now().Add(-time.Second))
	defer cancel()
	if _, err := g.server.ShouldRateLimit(late, req); status.Code(err) != codes.DeadlineExceeded {
		t.Errorf("a call whose time is over: %v", err)
	}
	g.server.Close()
	g.server.Close()
	if _, err := g.client.ShouldRateLimit(t.Context(), req); status.Code(err) != codes.Unavailable {
		t.Errorf("a closed server: %v", err)
	}
	if _, err := New(nil, mustParse(t, twoLimits), nil); err == nil || !strings.Contains(err.Error(), "node: nil") {
		t.Errorf("no node: %v", err)
	}
	if _, err := New(g.node, nil, nil); err == nil || !strings.Contains(err.Error(), "rules: nil") {
		t.Errorf("no rules: %v", err)
	}
}

// While Redis does not answer, each rule's own policy decides. A closed one is over
// its limit and no error, which a gateway would let pass.
func TestOutage(t *testing.T) {
	g := newGateway(t, `
domain: edge
rules:
- {name: local, match: [{key: local}], limit: 3/h, accuracy: exact}
- {name: open, match: [{key: open}], limit: 3/h, accuracy: exact, on_failure: open}
- {name: closed, match: [{key: closed}], limit: 3/h, accuracy: exact, on_failure: closed}
`, &Options{Headers: true})
	g.mini.SetError("LOADING Redis is loading the dataset in memory")
	g.want(ok, 20, d("open=a"))
	g.want(ok, 3, d("local=a"))
	g.want(overLimit, 3, d("local=a"))
	denied := g.want(overLimit, 3, d("closed=a"))
	meta := denied.GetDynamicMetadata().GetFields()
	if meta["limiter"].GetStringValue() != "edge/closed" || meta["path"].GetStringValue() != hybrid.PathFallback.String() {
		t.Errorf("metadata %v: want that edge/closed denied by its failure policy", meta)
	}
	g.want(overLimit, 3, d("open=a"), d("closed=b"))
	g.want(overLimit, 1, hits(d("closed=b"), 0))
	g.want(ok, 1, hits(d("open=b"), 0))
	if st := g.server.Stats(); st.Errors != 0 {
		t.Errorf("%+v: an outage was an error", st)
	}
	g.setRules(oneRule("limit: 5/h, accuracy: exact")) // also then
	g.want(ok, 5, d("user=a"))
	asks := func() hybrid.Path {
		r, err := g.limiter("edge/user").Peek(t.Context(), "a")
		if err != nil {
			t.Fatal(err)
		}
		return r.Path
	}
	if path := asks(); path != hybrid.PathFallback {
		t.Errorf("in the outage %v answered", path)
	}
	g.mini.SetError("")
	eventually(t, "Redis answers again", func() bool { return asks() == hybrid.PathExact })
	g.want(overLimit, 1, d("user=a"))
}
