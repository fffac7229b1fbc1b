package syncer

import (
	"context"
	"errors"
	"maps"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/hybridlimit/hybrid/slice"
)

var errGone = errors.New("connection refused")

// fake is the store of these tests: faithful accounts, a registry of members
// and marks, and every way to go wrong that the tests need. Its clock is the
// bubble's.
type fake struct {
	t      *testing.T
	shared bool // several nodes, or cells of one key, may settle an account at once

	mu       sync.Mutex
	accounts map[string]*ledger

	// Hooks, called without the lock.
	call func(batch []*slice.Settle)                   // before a call is executed; may sleep or block
	fate func(st *slice.Settle) (slice.Outcome, error) // of a settle; Unknown: executed, its reply lost
	beat func() error                                  // of a heartbeat; may sleep or block

	members map[string]map[string]time.Time // by limiter: when each member lapses
	marks   []slice.Mark
	markErr error

	ops     map[string]int // settles executed, by account
	log     []slice.Settle // settles executed, in order
	batches []int          // settles of each call
	flying  map[string]int // settles under way, by account
	polls   int            // reads of marks
	beats   int
	left    []string // members that left, "limiter/member"
}

func newFake(t *testing.T) *fake {
	return &fake{t: t, accounts: map[string]*ledger{}, members: map[string]map[string]time.Time{},
		ops: map[string]int{}, flying: map[string]int{}}
}

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
	f.checkUsage(st)
	g := f.account(st.Account).settle(time.Now().UnixMicro(), st.Rule, st.Usage)
	done := *st
	done.Grant = g
	f.log = append(f.log, done)
	if st.Outcome == slice.Ran {
		st.Grant = g
	}
}

// checkUsage refuses what the script would not read.
func (f *fake) checkUsage(st *slice.Settle) {
	u := st.Usage
	bad := min(u.Spent, u.Returned, u.Held, u.Want) < 0 || u.Fallback < 0 || len(u.Needs) > slice.MaxRuns ||
		u.Want > 0 && min(u.Least, u.Unit, u.Divisor) < 1 || st.Rule.Burst < 1 || st.Rule.Rate <= 0
	if bad {
		f.t.Errorf("a settle of %s that makes no sense: %+v", st.Account, *st)
	}
}

// account returns an account. The caller holds mu.
func (f *fake) account(name string) *ledger {
	m := f.accounts[name]
	if m == nil {
		m = &ledger{}
		f.accounts[name] = m
	}
	return m
}

func (f *fake) Heartbeat(_ context.Context, member string, ttl time.Duration, fleets []*slice.Fleet) {
	f.mu.Lock()
	beat := f.beat
	f.mu.Unlock()
	var err error
	if beat != nil {
		err = beat()
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.beats++
	now := time.Now()
	for _, fl := range fleets {
		if fl.Err = err; err != nil {
			continue
		}
		live := f.fleet(fl.Limiter)
		_, known := live[member]
		fl.Joined = !known
		live[member] = now.Add(ttl)
		for m := range live {
			fl.Members = append(fl.Members, m)
		}
		slices.Sort(fl.Members)
	}
}

// fleet returns the live members of a limiter. The caller holds mu.
func (f *fake) fleet(limiter string) map[string]time.Time {
	live := f.members[limiter]
	if live == nil {
		live = map[string]time.Time{}
		f.members[limiter] = live
	}
	for m, until := range live {
		if !until.After(time.Now()) {
			delete(live, m)
		}
	}
	return live
}

func (f *fake) Leave(_ context.Context, member string, limiters []string) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, l := range limiters {
		delete(f.members[l], member)
		f.left = append(f.left, l+"/"+member)
	}
	return nil
}

func (f *fake) Mark(_ context.Context, marks []slice.Mark) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.markErr == nil {
		f.marks = append(f.marks, marks...)
	}
	return f.markErr
}

func (f *fake) Marks(_ context.Context, since int64, most int) (newer []slice.Mark, err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.polls++
	for _, m := range f.marks {
		if m.At > since && len(newer) < most {
			newer = append(newer, m)
		}
	}
	return newer, f.markErr
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

// registered returns when each live member of a limiter lapses.
func (f *fake) registered(limiter string) map[string]time.Time {
	f.mu.Lock()
	defer f.mu.Unlock()
	return maps.Clone(f.fleet(limiter))
}

func (f *fake) opsOf(account string) int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.ops[account]
}

func (f *fake) last() slice.Settle {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.log[len(f.log)-1]
}

// state returns an account as it is now.
func (f *fake) state(account string, r slice.Rule) (used float64, lent int64) {
	f.mu.Lock()
	defer f.mu.Unlock()
	m := f.account(account)
	g := m.settle(time.Now().UnixMicro(), r, slice.Usage{})
	return g.Used, g.Lent
}

// use takes tokens from an account, as another node would.
func (f *fake) use(account string, r slice.Rule, tokens int64) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.account(account).settle(time.Now().UnixMicro(), r, slice.Usage{Charged: float64(tokens)})
}

// lend takes tokens from an account as a lease of another node.
func (f *fake) lend(account string, r slice.Rule, tokens int64) slice.Tag {
	f.mu.Lock()
	defer f.mu.Unlock()
	g := f.account(account).settle(time.Now().UnixMicro(), r,
		slice.Usage{Want: tokens, Least: 1, Unit: 1, Divisor: 1})
	if g.Granted != tokens {
		f.t.Fatalf("lent %d of %d", g.Granted, tokens)
	}
	return g.Tag
}
