package syncer

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/hybridlimit/hybrid/internal/fleet"
	"github.com/hybridlimit/hybrid/internal/ledger"
	"github.com/hybridlimit/hybrid/slice"
)

var (
	errGone   = errors.New("connection refused")
	errDenied = errors.New("NOPERM this user has no permissions to run the 'zadd' command")
)

// fake is the store of these tests: a faithful one in memory, and every way to
// go wrong that the tests need. Its clock is the bubble's.
type fake struct {
	*ledger.Store
	t      *testing.T
	shared bool // several nodes, or cells of one key, may settle an account at once

	mu sync.Mutex

	// Hooks, called without the lock.
	call func(batch []*slice.Settle)                   // before a call is executed; may sleep or block
	fate func(st *slice.Settle) (slice.Outcome, error) // of a settle; Unknown: executed, its reply lost
	beat func() error                                  // of a heartbeat; may sleep or block

	markErr error // of every reading and writing of marks

	ops     map[string]int // settles executed, by account
	log     []slice.Settle // settles executed, in order
	batches []int          // settles of each call
	flying  map[string]int // settles under way, by account
	marks   []slice.Mark   // published, in order
	polls   int            // reads of marks
	beats   int
	left    []string // members that left, "limiter/member"
}

func newFake(t *testing.T) *fake {
	return &fake{t: t, Store: ledger.NewStore(), ops: map[string]int{}, flying: map[string]int{}}
}

// Account gives accounts names that tests can spell.
func (f *fake) Account(limiter, key string) string { return limiter + "/" + key }

func (f *fake) Settle(_ context.Context, batch []*slice.Settle) {
	f.mu.Lock()
	f.batches = append(f.batches, len(batch))
	for _, st := range batch {
		if f.flying[st.Account]++; f.flying[st.Account] > 1 && !f.shared {
			f.t.Errorf("two settles of %s under way", st.Account)
		}
	}
	call, fate := f.call, f.fate
	f.mu.Unlock()
	if call != nil {
		call(batch)
	}
	for _, st := range batch {
		f.settle(st, fate)
	}
}

func (f *fake) settle(st *slice.Settle, fate func(*slice.Settle) (slice.Outcome, error)) {
	st.Outcome, st.Err = slice.Ran, nil
	if fate != nil {
		st.Outcome, st.Err = fate(st)
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.flying[st.Account]--
	if st.Outcome == slice.NotRun {
		return
	}
	f.ops[st.Account]++
	done := slice.Settle{Account: st.Account, Rule: st.Rule, Usage: st.Usage}
	f.execute(&done)
	f.log = append(f.log, done)
	if st.Outcome == slice.Ran {
		st.Grant = done.Grant
	}
}

// execute executes a settle that nobody may have to refuse.
func (f *fake) execute(st *slice.Settle) {
	f.Store.Settle(context.Background(), []*slice.Settle{st})
	if st.Outcome != slice.Ran {
		f.t.Errorf("a settle of %s that makes no sense: %v: %+v", st.Account, st.Err, *st)
	}
}

func (f *fake) Heartbeat(ctx context.Context, member string, ttl time.Duration, fleets []*slice.Fleet) {
	f.mu.Lock()
	beat := f.beat
	f.beats++
	f.mu.Unlock()
	if beat != nil {
		if err := beat(); err != nil {
			for _, fl := range fleets {
				fl.Err, fl.Refused = err, errors.Is(err, errDenied)
			}
			return
		}
	}
	f.Store.Heartbeat(ctx, member, ttl, fleets)
}

func (f *fake) Leave(ctx context.Context, member string, limiters []string) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, l := range limiters {
		f.left = append(f.left, l+"/"+member)
	}
	return f.Store.Leave(ctx, member, limiters)
}

func (f *fake) Mark(ctx context.Context, marks []slice.Mark) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.markErr != nil {
		return f.markErr
	}
	f.marks = append(f.marks, marks...)
	return f.Store.Mark(ctx, marks)
}

func (f *fake) Marks(ctx context.Context, since int64, most int) ([]slice.Mark, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.polls++
	if f.markErr != nil {
		return nil, f.markErr
	}
	return f.Store.Marks(ctx, since, most)
}

// What tests change while nodes run.

func (f *fake) set(change func()) {
	f.mu.Lock()
	defer f.mu.Unlock()
	change()
}

func (f *fake) onCall(call func([]*slice.Settle)) { f.set(func() { f.call = call }) }

// slow makes every call take so long.
func (f *fake) slow(d time.Duration) { f.onCall(func([]*slice.Settle) { time.Sleep(d) }) }

func (f *fake) onSettle(fate func(*slice.Settle) (slice.Outcome, error)) {
	f.set(func() { f.fate = fate })
}

// fail makes every settle and every heartbeat end so; Ran heals the store.
func (f *fake) fail(o slice.Outcome) {
	if o == slice.Ran {
		f.set(func() { f.fate, f.beat = nil, nil })
		return
	}
	f.set(func() {
		f.fate = func(*slice.Settle) (slice.Outcome, error) { return o, errGone }
		f.beat = func() error { return errGone }
	})
}

// What tests look at.

// settled returns the settles that were executed, in order.
func (f *fake) settled() []slice.Settle {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Clone(f.log)
}

// calls returns how many settles each call carried.
func (f *fake) calls() []int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Clone(f.batches)
}

func (f *fake) opsOf(account string) int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.ops[account]
}

func (f *fake) settles() []slice.Settle {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Clone(f.log)
}

func (f *fake) last() slice.Settle {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.log[len(f.log)-1]
}

// join registers another node, once.
func (f *fake) join(limiter, member string) {
	f.Store.Heartbeat(context.Background(), member, fleet.TTL, []*slice.Fleet{{Limiter: limiter}})
}

// settleAs executes a settle of somebody else.
func (f *fake) settleAs(account string, r slice.Rule, u slice.Usage) slice.Grant {
	st := slice.Settle{Account: account, Rule: r, Usage: u}
	f.execute(&st)
	return st.Grant
}

// state returns an account as it is now.
func (f *fake) state(account string, r slice.Rule) (used float64, lent int64) {
	g := f.settleAs(account, r, slice.Usage{})
	return g.Used, g.Lent
}

// use takes tokens from an account, as another node would.
func (f *fake) use(account string, r slice.Rule, tokens int64) {
	f.settleAs(account, r, slice.Usage{Charged: float64(tokens)})
}

// lend takes tokens from an account as a lease of another node.
func (f *fake) lend(account string, r slice.Rule, tokens int64) slice.Tag {
	g := f.settleAs(account, r, slice.Usage{Want: tokens, Least: 1, Unit: 1, Divisor: 1})
	if g.Granted != tokens {
		f.t.Fatalf("lent %d of %d", g.Granted, tokens)
	}
	return g.Tag
}
