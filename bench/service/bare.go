package service

import (
	"context"
	"sync/atomic"

	"github.com/puzpuzpuz/xsync/v3"
)

// bareMaps are what no limiter that knows keys can do without: on each node a map from
// keys to words, a lookup and a compare-and-swap. They limit nothing. With a million keys
// on each of 20 nodes, what it takes is the time of the memory.
type bareMaps struct {
	nodes []*xsync.MapOf[string, *atomic.Int64]
}

func startBare(p Plan) *bareMaps {
	b := &bareMaps{}
	for range p.Nodes {
		b.nodes = append(b.nodes, xsync.NewMapOf[string, *atomic.Int64]())
	}
	return b
}

func (b *bareMaps) allow(_ context.Context, node int, key string) (answer, error) {
	word, ok := b.nodes[node].Load(key)
	if !ok {
		word, _ = b.nodes[node].LoadOrStore(key, new(atomic.Int64))
	}
	for {
		if n := word.Load(); word.CompareAndSwap(n, n+1) {
			return answer{allowed: true}, nil
		}
	}
}

func (*bareMaps) paths() []string { return []string{"map"} }
func (*bareMaps) over() float64   { return 0 }
func (*bareMaps) books() books    { return books{} }
func (*bareMaps) stop()           {}
