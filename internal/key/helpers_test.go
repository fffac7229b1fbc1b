package key

import (
	"testing"
	"time"

	"github.com/hybridlimit/hybrid/internal/ledger"
	"github.com/hybridlimit/hybrid/precheck"
	"github.com/hybridlimit/hybrid/slice"
)

var strict = Dial{Slices: true}

// bucket is the rule of a token bucket of n tokens per period.
func bucket(n int64, period time.Duration) slice.Rule {
	return slice.Rule{Burst: n, Rate: float64(n) / float64(period.Microseconds())}
}

// fixed is the rule of a fixed window.
func fixed(n int64, period time.Duration) slice.Rule {
	r := bucket(n, period)
	r.Window = period.Microseconds()
	return r
}

func equal[T comparable](t *testing.T, what string, got, want T) {
	t.Helper()
	if got != want {
		t.Errorf("%s: %v, want %v", what, got, want)
	}
}

// alone is the fleet of a node that is alone and has no floor.
type alone struct {
	history precheck.History
	fresh   precheck.Fresh
	open    bool
}

func (f *alone) History() *precheck.History { return &f.history }
func (f *alone) Fresh() *precheck.Fresh     { return &f.fresh }
func (f *alone) FloorFrom() int64           { return 0 }
func (f *alone) FloorOpen(int64) bool       { return f.open }
func (f *alone) Rank(string) int            { return 0 }

// node is one key on one node, its account in the store, and a clock that a test moves.
type node struct {
	t       *testing.T
	now     int64 // ns; the store's clock is the same, in µs
	plan    *Plan
	cell    slice.Cell
	dead    slice.Watermark
	known   Known
	floor   precheck.Floor
	fleet   alone
	policy  Policy
	down    bool
	retired bool

	s       *State
	account ledger.Account
	done    Effects // of the last step
}

// start is a moment at which lease epochs and windows of a minute begin.
const start = int64(1_000_000 * time.Minute)

func newNode(t *testing.T, plan *Plan) *node {
	n := &node{t: t, now: start, plan: plan, s: &State{}}
	n.fleet.history.Set(0, 1)
	n.known.Start(n.now)
	n.dead.Pass(slice.TickAt(n.now))
	n.do((*State).Begin)
	return n
}

func (n *node) step() Step {
	return Step{Env: Env{
		Ground: Ground{Now: n.now, Plan: n.plan, Known: &n.known, Floor: &n.floor, Fleet: &n.fleet},
		Cell:   &n.cell, Dead: &n.dead, Key: "k", Policy: n.policy,
		Timing: Timing{Latency: int64(time.Millisecond), SyncInterval: int64(100 * time.Millisecond), Timeout: int64(20 * time.Millisecond), Downtime: int64(time.Second)},
		Chance: 0.5, Down: n.down, Retired: n.retired,
	}}
}

// do runs a step.
func (n *node) do(f func(s *State, t *Step)) Effects {
	t := n.step()
	t.Clock = 1 // the store's clock is known, and a microsecond ahead
	f(n.s, &t)
	n.done = t.Effects
	return t.Effects
}

// wait moves the clock; leases that end by then are over.
func (n *node) wait(d time.Duration) {
	n.now += int64(d)
	n.dead.Pass(slice.TickAt(n.now))
}

// compose makes the settle to send now.
func (n *node) compose() (st *slice.Settle) {
	n.do(func(s *State, t *Step) { st = s.Compose(t) })
	return st
}

// apply executes a settle, and takes over the reply.
func (n *node) apply(st *slice.Settle) *slice.Settle {
	if st != nil {
		st.Grant, _ = n.account.Settle(n.now/1000, st.Rule, st.Usage)
		st.Outcome = slice.Ran
	}
	n.end(st)
	return st
}

// end ends a settle with its outcome.
func (n *node) end(st *slice.Settle) { n.do(func(s *State, t *Step) { s.Apply(t, st) }) }

// settle sends what there is to send, and executes it.
func (n *node) settle() *slice.Settle { return n.apply(n.compose()) }

// ask decides a request like the shell.
func (n *node) ask(cost int64) (a Answer) {
	var w *Waiter
	n.do(func(s *State, t *Step) {
		var ok bool
		if a, ok = s.Recheck(t, cost); ok {
			return
		}
		a, w = s.Admit(t, cost, false)
	})
	if w != nil {
		n.settle()
		a = <-w.Answer
	}
	return a
}

// hold asks until the node holds a slice.
func (n *node) hold() {
	n.t.Helper()
	for range 100 {
		n.ask(1)
		if n.cell.Tokens() > 8 && !n.s.inflight.busy() {
			n.settled()
			return
		}
		n.wait(20 * time.Millisecond)
	}
	n.t.Fatal("no slice")
}

// settled ends what is queued in the background.
func (n *node) settled() {
	for n.s.inflight.busy() {
		n.settle()
	}
}

// doubt puts the slice in doubt: its settle was not answered.
func (n *node) doubt() {
	n.do(func(s *State, t *Step) { s.Flush(t) })
	st := n.compose()
	st.Outcome, st.Err = slice.Unknown, errLost
	n.end(st)
}

// usage tells a debt.
func usage(d *debt) (u slice.Usage) {
	d.tell(&u, 0, d.admitted)
	return u
}
