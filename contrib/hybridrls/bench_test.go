package hybridrls

import (
	"context"
	"fmt"
	"testing"

	"github.com/alicebob/miniredis/v2"
	commonv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/common/ratelimit/v3"
	rlsv3 "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"
	"github.com/redis/go-redis/v9"

	"github.com/hybridlimit/hybrid"
)

// BenchmarkDecision is a request without the network: of one limit, and of two
// descriptors that meet three.
func BenchmarkDecision(b *testing.B) {
	for name, ds := range map[string][]*commonv3.RateLimitDescriptor{
		"1 limit":  {d("route=search", "ip=10.0.0.1")},
		"3 limits": {d("user=alice"), d("route=search", "ip=10.0.0.1")},
	} {
		b.Run(name, func(b *testing.B) {
			s := benchServer(b)
			req := &rlsv3.RateLimitRequest{Domain: "edge", Descriptors: ds}
			b.ReportAllocs()
			for b.Loop() {
				if resp, err := s.ShouldRateLimit(context.Background(), req); err != nil || resp.OverallCode != ok {
					b.Fatal(resp, err)
				}
			}
		})
	}
}

// BenchmarkMatch finds one of 10,000 rules.
func BenchmarkMatch(b *testing.B) {
	var root branch
	for i := range 10_000 {
		at := root.at([]entrySpec{{"route", fmt.Sprint("r", i)}, {"ip", ""}})
		at.rules = append(at.rules, &rule{open: []int{1}})
	}
	es := d("route=r9999", "ip=10.0.0.1").Entries
	b.ReportAllocs()
	for b.Loop() {
		if len(root.find(es)) != 1 {
			b.Fatal("it is not found")
		}
	}
}

func benchServer(b *testing.B) *Server {
	b.Helper()
	store, err := miniredis.Run()
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(store.Close)
	rdb := redis.NewClient(&redis.Options{Addr: store.Addr()})
	b.Cleanup(func() { _ = rdb.Close() })
	node, err := hybrid.New(rdb, &hybrid.Options{Logger: silent})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = node.Close() })
	s, err := New(node, mustParse(b, `
domain: edge
rules:
- {name: user, match: [{key: user}], limit: 1000000000/s}
- {name: user-daily, match: [{key: user}], limit: 100000000000000/day}
- {name: route, match: [{key: route}, {key: ip}], limit: 1000000000/s}
`), &Options{Logger: silent})
	if err != nil {
		b.Fatal(err)
	}
	return s
}
