package httpsuite

import (
	"log/slog"
	"testing"
	"time"

	"github.com/hybridlimit/hybrid"
	"github.com/hybridlimit/hybrid/internal/redistest"
)

// World is a node on an embedded Redis that answers however busy the machine is.
type World struct {
	t        *testing.T
	node     *hybrid.Node
	setError func(string) // of Redis, for each call
}

// NewWorld starts one, until the test ends.
func NewWorld(t *testing.T) *World {
	t.Helper()
	mini := redistest.Mini(t)
	node, err := hybrid.New(redistest.ClientOf(t, mini), &hybrid.Options{Logger: slog.New(slog.DiscardHandler), StoreTimeout: 5 * time.Second})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = node.Close() })
	return &World{t: t, node: node, setError: mini.SetError}
}

// Limiter admits exactly its limit.
func (w *World) Limiter(name string, l hybrid.Limit) *hybrid.Limiter {
	w.t.Helper()
	return w.limiter(name, l, hybrid.LimiterOptions{})
}

func (w *World) limiter(name string, l hybrid.Limit, opts hybrid.LimiterOptions) *hybrid.Limiter {
	w.t.Helper()
	opts.Accuracy = hybrid.Strict
	lim, err := w.node.Limiter(name, l, &opts)
	if err != nil {
		w.t.Fatal(err)
	}
	return lim
}

// breakRedis makes each call fail, as a server that is starting does.
func (w *World) breakRedis() { w.setError("LOADING Redis is loading the dataset in memory") }
