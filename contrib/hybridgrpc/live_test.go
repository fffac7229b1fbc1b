package hybridgrpc

import (
	"context"
	"net"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"

	"github.com/hybridlimit/hybrid"
	"github.com/hybridlimit/hybrid/internal/redistest"
)

// listen serves echo over the loopback and returns a client of it.
func listen(t testing.TB, server []grpc.ServerOption, dial ...grpc.DialOption) *caller {
	t.Helper()
	at, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	srv := grpc.NewServer(server...)
	srv.RegisterService(&echoDesc, &echo{})
	go func() { _ = srv.Serve(at) }()
	t.Cleanup(srv.Stop)
	cc, err := grpc.NewClient(at.Addr().String(), append(dial, grpc.WithTransportCredentials(insecure.NewCredentials()))...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cc.Close() })
	return &caller{cc}
}

// liveNode is a node on a real Redis.
func liveNode(t testing.TB) (*hybrid.Node, *redistest.Server) {
	t.Helper()
	server := redistest.Start(t)
	node, err := hybrid.New(server.Client(t), &hybrid.Options{Logger: silent, StoreTimeout: 500 * time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = node.Close() })
	return node, server
}

// Over TCP, with a real Redis and gRPC's own retries: calls that come early take as
// long as they were told, and all of them pass.
func TestRetriesOverTheNetwork(t *testing.T) {
	node, _ := liveNode(t)
	l := newLimiter(t, node, "api", hybrid.Per(1, 200*time.Millisecond), &hybrid.LimiterOptions{Accuracy: hybrid.Strict})
	c := listen(t, interceptors(t, l, nil), retrying())
	start := time.Now()
	for i := range 5 {
		if a := c.say(ctx, ""); a.err != nil {
			t.Fatalf("call %d after %v: %v", i, time.Since(start), a.err)
		}
	}
	if took := time.Since(start); took < 790*time.Millisecond { // clocks of two processes
		t.Errorf("five calls at five a second in %v", took)
	}
}

// When Redis is killed, calls that fail closed are unavailable, and others pass.
func TestRedisIsKilled(t *testing.T) {
	node, redis := liveNode(t)
	closed := newLimiter(t, node, "closed", hybrid.PerMinute(100), &hybrid.LimiterOptions{Accuracy: hybrid.Exact, OnFailure: hybrid.FailClosed})
	local := newLimiter(t, node, "local", hybrid.PerMinute(100), &hybrid.LimiterOptions{Accuracy: hybrid.Exact})
	login, other := listen(t, interceptors(t, closed, nil)), listen(t, interceptors(t, local, nil))
	for _, c := range []*caller{login, other} {
		if a := c.say(ctx, ""); a.err != nil {
			t.Fatal(a.err)
		}
	}
	redis.Kill()
	d := detailsOf(t, login.say(ctx, "").err)
	if d.code != codes.Unavailable || d.retry == nil || d.retry.RetryDelay.AsDuration() != time.Second {
		t.Errorf("%+v", d)
	}
	if a := other.say(ctx, ""); a.err != nil {
		t.Error(a.err)
	}
}

// Whatever a client writes, it gets a status, and the server goes on.
func TestHostileMetadata(t *testing.T) {
	rdb := redistest.MiniClient(t)
	node, err := hybrid.New(rdb, &hybrid.Options{Logger: silent, StoreTimeout: time.Second})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = node.Close() }()
	l := newLimiter(t, node, "api", hybrid.PerHour(1), &hybrid.LimiterOptions{Accuracy: hybrid.Strict})
	c := listen(t, interceptors(t, l, &ServerOptions{
		Key:     Join(Metadata("x-api-key"), Metadata("token-bin"), ClientIP([]string{"127.0.0.0/8"}, nil)),
		Subject: func(d Decision) string { return d.Key },
	}))
	long := strings.Repeat("k", 1<<20)
	for name, one := range map[string]struct {
		pairs []string
		want  codes.Code // of the second call: the first passes if there is a key at all
	}{
		"nothing":        {nil, codes.InvalidArgument},
		"one missing":    {[]string{"x-api-key", "k"}, codes.InvalidArgument},
		"two":            {[]string{"x-api-key", "k", "x-api-key", "k", "token-bin", "t"}, codes.InvalidArgument},
		"bytes":          {[]string{"x-api-key", "k", "token-bin", "\x00\xff\n\x80"}, codes.ResourceExhausted},
		"long":           {[]string{"x-api-key", long, "token-bin", "t"}, codes.InvalidArgument},
		"a long join":    {[]string{"x-api-key", long[:longestKey], "token-bin", "t"}, codes.InvalidArgument},
		"as long as may": {[]string{"x-api-key", long[:longestKey-100], "token-bin", "t"}, codes.ResourceExhausted},
		"long bytes":     {[]string{"x-api-key", "k", "token-bin", strings.Repeat("\xff", longestKey-100)}, codes.ResourceExhausted},
		"long addresses": {[]string{"x-api-key", "a", "token-bin", "t", "x-forwarded-for", long}, codes.ResourceExhausted},
		"many addresses": {[]string{"x-api-key", "m", "token-bin", "t", "x-forwarded-for", strings.Repeat("127.0.0.1,", 10000)}, codes.ResourceExhausted},
		"own fields":     {[]string{"x-api-key", "f", "token-bin", "t", "x-ratelimit-limit", "9", "retry-after", "0"}, codes.ResourceExhausted},
		"own pushback":   {[]string{"x-api-key", "p", "token-bin", "t", "grpc-retry-pushback-ms", "0"}, codes.ResourceExhausted},
	} {
		call, cancel := context.WithTimeout(with(one.pairs...), 30*time.Second)
		first, second := c.say(call, ""), c.say(call, "")
		cancel()
		if status.Code(second.err) != one.want || (first.err == nil) != (one.want == codes.ResourceExhausted) {
			t.Errorf("%s: %v, then %v; want %v", name, first.err, second.err, one.want)
		}
	}
	if a := c.say(with("x-api-key", "fair", "token-bin", "t"), ""); a.err != nil {
		t.Error(a.err)
	}
}
