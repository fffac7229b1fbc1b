package sim

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/hybridlimit/hybrid"
)

// Aside is what callers do besides asking for tokens of one limit. Each is a part of the
// requests.
type Aside struct {
	AllOf   float64 // ask for another limit as well, which denies them: what the first took comes back
	Flushes float64 // a flush of the node follows
	Resets  float64 // a reset of the key follows
}

// any says whether there is something aside.
func (a Aside) any() bool { return a != Aside{} }

// aside is what a request does besides, or is followed by.
type aside uint8

const (
	nothing aside = iota
	allOf
	flushing
	resetting
)

// asideOf draws it. Which request it is decides, so that it does not matter which is
// answered first.
func (e *Experiment) asideOf(r *request) aside {
	if !e.Aside.any() {
		return nothing
	}
	at := rand.New(rand.NewPCG(e.Seed^0xa51de, uint64(r.number))).Float64()
	for i, part := range []float64{e.Aside.AllOf, e.Aside.Flushes, e.Aside.Resets} {
		if at -= part; at < 0 {
			return allOf + aside(i)
		}
	}
	return nothing
}

// follow flushes the node or resets the key of a request, and waits for nothing.
func (c *crowd) follow(r *request, what aside) {
	if c.changer == nil {
		return
	}
	node, key := int(r.node), c.names[r.key]
	switch what {
	case flushing:
		c.all.Go(func() { c.changer.flush(node) })
	case resetting:
		c.all.Go(func() { c.changer.reset(node, key) })
	}
}

// usedUpName is the limiter that denies: of each of its keys, one token is there in a day.
const usedUpName = "used up"

func (f *fleet) addUsedUp(m *member) (err error) {
	m.usedUp, err = m.node.Limiter(usedUpName, hybrid.PerDay(1), &hybrid.LimiterOptions{Accuracy: hybrid.Exact, OnFailure: hybrid.FailClosed})
	return err
}

// askAll asks for tokens of a key and of another limit, which is used up: Redis denies that,
// as the node does not know yet. Where the other limit cannot be used up, because Redis
// does not answer, the key is asked for alone.
func (f *fleet) askAll(node int, key string, cost int64) Answer {
	m, ctx := f.member(node), context.Background()
	other := fmt.Sprint(f.meter.others.Add(1))
	if r, err := m.usedUp.Allow(ctx, other); err != nil || !r.Allowed {
		return f.Ask(node, key, cost)
	}
	f.meter.asked.Add(2) // the key, and what gives it back
	asked := time.Now()
	r, err := m.node.AllowAll(ctx, hybrid.Check{Limiter: m.limiter, Key: key, N: cost}, hybrid.Check{Limiter: m.usedUp, Key: other})
	now := time.Now()
	switch {
	case err != nil && (!m.gone.Load() || !errors.Is(err, hybrid.ErrClosed)):
		f.problem("AllowAll", err)
	case err == nil && r.Allowed && f.e.Faults.losses() == 0:
		f.problem("AllowAll", fmt.Errorf("admitted beside a limit that was used up %v before", now.Sub(asked)))
	}
	return Answer{Allowed: r.Allowed, Blocked: now != asked, At: now.UnixNano() / 1000 * 1000, Policy: r.Path == hybrid.PathFallback}
}

// flush flushes a node, which may cost an operation for each key. What keeps it from that is a
// fault of the experiment.
func (f *fleet) flush(node int) {
	f.meter.asked.Add(int64(f.e.Keys))
	_ = f.member(node).node.Flush(context.Background())
}

// reset resets a key: all of its limit may be free at any moment from now on, until Redis
// has said that it was.
func (f *fleet) reset(node int, key string) {
	m := f.member(node)
	f.meter.asked.Add(1)
	r := request{at: time.Now().UnixNano() / 1000 * 1000, number: -1, cost: f.e.Limit.Burst(), key: numberOf(key), ideal: true, event: refunding}
	r.asked = time.Now().UnixNano()
	f.changes.judge.happened(r)
	if m.limiter.Reset(context.Background(), key) == nil {
		r.at, r.number, r.event = time.Now().UnixNano(), 1<<63-1, refunded
		f.changes.judge.happened(r)
	}
}
