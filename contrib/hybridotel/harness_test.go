package hybridotel

import (
	"context"
	"log/slog"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"

	"github.com/hybridlimit/hybrid"
	"github.com/hybridlimit/hybrid/internal/redistest"
)

// world is a node on an embedded Redis, in the virtual time of a synctest bubble.
type world struct {
	t    *testing.T
	mini *miniredis.Miniredis
	link *redistest.Link // to mini
	rdb  *redis.Client
	node *hybrid.Node
}

func inBubble(t *testing.T, test func(w *world)) {
	t.Helper()
	redistest.InBubble(t, func(t *testing.T, mini *miniredis.Miniredis) {
		w := &world{t: t, mini: mini, link: redistest.NewLink(mini.Dial)}
		w.rdb = w.link.Client(t)
		w.node = w.another()
		t.Cleanup(func() { _ = w.node.Close() }) // some tests have broken its Redis
		test(w)
	})
}

// another makes one more node on the same Redis.
func (w *world) another() *hybrid.Node {
	w.t.Helper()
	node, err := hybrid.New(w.rdb, &hybrid.Options{Logger: silent})
	if err != nil {
		w.t.Fatal(err)
	}
	return node
}

var silent = slog.New(slog.DiscardHandler)

func (w *world) limiter(name string, l hybrid.Limit, opts *hybrid.LimiterOptions) *hybrid.Limiter {
	w.t.Helper()
	lim, err := w.node.Limiter(name, l, opts)
	if err != nil {
		w.t.Fatal(err)
	}
	return lim
}

// breakRedis makes each call fail, as a server that is starting does.
func (w *world) breakRedis() { w.mini.SetError(redistest.Loading) }

func (w *world) mendRedis() { w.mini.SetError("") }

// ask sends requests of one token, one each time that a span passes, and returns their
// results.
func (w *world) ask(l *hybrid.Limiter, key string, times int, every time.Duration) []hybrid.Result {
	w.t.Helper()
	var results []hybrid.Result
	for range times {
		r, err := l.Allow(context.Background(), key)
		if err != nil {
			w.t.Fatal(err)
		}
		results = append(results, r)
		time.Sleep(every)
	}
	return results
}
