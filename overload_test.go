package hybrid

import (
	"cmp"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hybridlimit/hybrid/internal/ledger"
	"github.com/hybridlimit/hybrid/internal/oracle"
	"github.com/hybridlimit/hybrid/internal/redistest"
)

// This file is the cases of more load than anybody planned for: hot keys, keys
// without number, and keys that somebody has spoiled.

var full = flag.Bool("full", false, "run the tests of overload at their full size: minutes, and gigabytes")

// quiet is a logger that says nothing.
func quiet() *slog.Logger { return slog.New(slog.NewTextHandler(io.Discard, nil)) }

// onLedger makes a node on a store in memory, with a limiter named "api".
func onLedger(t testing.TB, store *ledger.Store, opts Options, limit Limit, lo *LimiterOptions) (*Node, *Limiter) {
	t.Helper()
	opts.Logger = cmp.Or(opts.Logger, quiet())
	all, err := opts.withDefaults()
	if err != nil {
		t.Fatal(err)
	}
	n := newNode(store, all)
	l, err := n.Limiter("api", limit, lo)
	if err != nil {
		t.Fatal(err)
	}
	return n, l
}

// An attack on one key costs the store what the limit costs it, not what the
// attack sends.
func TestHotKey(t *testing.T) {
	longUnderRace(t)
	limit := PerSecond(1000)
	rates := []float64{50_000}
	if *full {
		rates = append(rates, 2_000, 5_000, 200_000)
	}
	for _, rate := range rates {
		for _, acc := range []Accuracy{Balanced, Strict} {
			setup := fleetSetup{limit: limit, limiter: LimiterOptions{Accuracy: acc}}
			inBubble(t, setup, func(f *fleet) { hotKey(f, rate, acc) })
		}
	}
}

// hotKey attacks a fleet's key, and judges the seconds after the first two, in which the
// burst goes.
func hotKey(f *fleet, rate float64, acc Accuracy) {
	const span = 3
	rng := rand.New(rand.NewPCG(10, uint64(rate)))
	time.Sleep(6 * time.Second) // all nodes know each other
	f.load(rng, rate, 2*time.Second, uniform, 1)
	ops, used := f.stats().Operations, f.used("k")
	f.load(rng, rate, span*time.Second, uniform, 1)
	perSecond, admitted := float64(f.stats().Operations-ops)/span, float64(f.used("k")-used)/span
	f.t.Logf("%v, %v/s offered: %v operations and %v admitted per second", acc, rate, perSecond, admitted)
	if perSecond > 440 {
		f.t.Errorf("%v, %v/s: %v operations per second, allowed 440", acc, rate, perSecond)
	}
	if most := 1010 * (1 + acc.Over()); admitted < 990 || admitted > most {
		f.t.Errorf("%v, %v/s: %v admitted per second, want 990 to %v", acc, rate, admitted, most)
	}
	f.checkBound(PerSecond(1000), acc.Over())
	f.checkCost()
}

// All load is on one node, and then on another: what idle nodes own must not
// be missing there.
func TestQuietNode(t *testing.T) {
	limit := PerSecond(1000)
	for _, acc := range []Accuracy{Balanced, Strict} {
		setup := fleetSetup{limit: limit, limiter: LimiterOptions{Accuracy: acc}}
		inBubble(t, setup, func(f *fleet) {
			rng := rand.New(rand.NewPCG(11, 11))
			f.load(rng, 900, 10*time.Second, only(3), 1)
			if n := f.denials(); n > 0 {
				t.Errorf("%v: %d denials, though one node sends 900/s of 1000/s alone", acc, n)
			}
			f.load(rng, 900, time.Minute, only(17), 1)
			moved := f.denials()
			f.load(rng, 900, 10*time.Second, only(17), 1)
			if n := f.denials() - moved; n > 0 {
				t.Errorf("%v: %d denials a lease epoch after the load moved", acc, n)
			}
			t.Logf("%v: %d denials in the epoch after the load moved", acc, moved)
			f.checkBound(limit, acc.Over())
			f.checkCost()
		})
	}
}

// only sends everything to one node.
func only(node int) place { return func(*fleet, *rand.Rand, time.Duration) int { return node } }

// denials counts the requests of k that were denied.
func (f *fleet) denials() (n int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, r := range f.requests["k"] {
		if !r.Allowed {
			n++
		}
	}
	return n
}

// Keys that nobody uses any more leave nothing behind, neither in the store nor
// on the node.
func TestIdleKeys(t *testing.T) {
	longUnderRace(t)
	keys := 30_000
	if *full {
		keys = 1_000_000
	}
	for _, acc := range []Accuracy{Balanced, Strict, Exact} {
		synctest.Test(t, func(t *testing.T) {
			store := ledger.NewStore()
			n, l := onLedger(t, store, Options{}, PerSecond(10), &LimiterOptions{Accuracy: acc})
			for i := range keys {
				key := fmt.Sprint("key ", i)
				for range 3 { // it comes again and gets a slice
					allow(t, l, key, 1)
				}
				if i%1000 == 999 {
					time.Sleep(10 * time.Millisecond)
				}
			}
			if most := n.Stats().Total.Keys; most < keys/2 && acc == Strict {
				t.Errorf("%d of %d keys remembered", most, keys)
			}
			time.Sleep(2*time.Minute + 2*time.Second) // all leases are over
			left := len(store.Accounts())
			for range 10 { // the hand passes a part of the keys each tick: a minute leaves one in e
				time.Sleep(time.Minute)
			}
			t.Logf("%v: %d accounts and %d keys are left", acc, left, n.Stats().Total.Keys)
			if left > 0 {
				t.Errorf("%v: %d accounts are left when the leases are over", acc, left)
			}
			if cells := n.Stats().Total.Keys; cells > keys/1000 {
				t.Errorf("%v: %d of %d cells are left", acc, cells, keys)
			}
			if err := n.Close(); err != nil {
				t.Error(err)
			}
		})
	}
}

// The same on a real Redis, for accounts that lend nothing; those that do carry
// the end of their leases.
func TestIdleKeysOnRedis(t *testing.T) {
	const keys = 20_000
	for _, acc := range []Accuracy{Strict, Exact} {
		setup := fleetSetup{nodes: 1, limit: PerSecond(10), limiter: LimiterOptions{Accuracy: acc}}
		onRedis(t, setup, func(f *fleet) {
			names := make([]string, keys)
			for i := range names {
				names[i] = fmt.Sprint("key ", i)
			}
			inParallel(64, names, func(key string) { allow(t, f.lims[0], key, 1) })
			longest := time.Second
			if acc == Strict {
				longest = 2*time.Minute + time.Second
			}
			for _, key := range names[:200] {
				if left := f.ttl(key); left > longest {
					t.Errorf("%v: %q has %v to live", acc, key, left)
				}
			}
			if acc == Exact {
				redistest.Eventually(t, "all accounts expire", func() bool { return f.admin.DBSize(ctx).Val() <= 2 })
			}
		})
	}
}

// One key of the wrong type among 64 that settle together: the others are
// settled once each, and the failure policy decides that one.
func TestPoisonedAccount(t *testing.T) {
	for policy, want := range map[FailurePolicy]bool{FailLocal: true, FailOpen: true, FailClosed: false} {
		setup := strict(1, slow(100))
		setup.limiter.OnFailure = policy
		t.Run(policy.String(), func(t *testing.T) {
			both(t, setup, func(f *fleet) { poisoned(f, want) })
		})
	}
}

func poisoned(f *fleet, want bool) {
	if err := f.admin.LPush(ctx, f.account("key 30"), "poison").Err(); err != nil {
		f.t.Fatal(err)
	}
	answers := make([]Result, 64)
	for round := range 3 {
		before := f.stats()
		var all sync.WaitGroup
		for i := range answers {
			all.Go(func() { answers[i] = f.ask(0, fmt.Sprint("key ", i), 40) })
		}
		all.Wait()
		for i, r := range answers {
			switch {
			case i == 30 && (r.Path != PathFallback || r.Allowed != (want && round < 2 || f.lims[0].opts.OnFailure == FailOpen)):
				f.t.Errorf("round %d, the poisoned key: %+v", round, r)
			case i != 30 && (r.Path == PathFallback || r.Allowed != (round < 2)):
				f.t.Errorf("round %d, its neighbour %d: %+v", round, i, r)
			}
		}
		n := f.stats()
		if ops := n.Operations - before.Operations; ops != 63 {
			f.t.Errorf("round %d: %d operations for 63 sound keys", round, ops)
		}
		if n.NotRun == before.NotRun || n.Unknown > 0 {
			f.t.Errorf("round %d: not run %d, unknown %d", round, n.NotRun, n.Unknown)
		}
	}
	if f.nodes[0].Stats().StoreDown {
		f.t.Error("the store is given up for one bad key")
	}
	if err := f.admin.Del(ctx, f.account("key 30")).Err(); err != nil { // or it would be said to the end
		f.t.Fatal(err)
	}
	if r := f.ask(0, "key 30", 1); r.Path == PathFallback {
		f.t.Errorf("the key, now sound: %+v", r)
	}
	if f.lims[0].opts.OnFailure != FailOpen {
		f.checkBound(slow(100), 0)
	}
}

// A flood of keys pushes a key out of the table all the time. What comes back
// must not have a floor or a slice that it has used before.
func TestEvictionMintsNothing(t *testing.T) {
	longUnderRace(t)
	maxKeys, flood, span := 500, 2_500, 40*time.Second
	if *full {
		maxKeys, flood = 10_000, 50_000
	}
	limit := PerMinute(1000)
	for _, acc := range []Accuracy{Balanced, Strict} {
		synctest.Test(t, func(t *testing.T) {
			n, l := onLedger(t, ledger.NewStore(), Options{MaxKeys: maxKeys, Servers: 20}, limit, &LimiterOptions{Accuracy: acc})
			time.Sleep(70 * time.Second) // floors are earned
			judge := oracle.NewChecker(oracleOf(limit).Over(acc.Over() / 20))
			for i := range int(span.Seconds()) * 100 {
				for j := range flood / 100 {
					allow(t, l, fmt.Sprintf("fresh %d.%d", i, j), 1)
				}
				if allow(t, l, "k", 1).Allowed {
					judge.Add(oracle.Admission{At: time.Now().UnixNano(), Cost: 1})
				}
				time.Sleep(10 * time.Millisecond)
			}
			if err := judge.Report().Err(); err != nil {
				t.Errorf("%v: %v", acc, err)
			}
			st := n.Stats()
			t.Logf("%v: %d admitted, %d evictions", acc, judge.Report().Total, st.Evictions)
			if least := int64(0.95 * (1000 + 1000*span.Minutes())); judge.Report().Total < least {
				t.Errorf("%v: only %d admitted, want %d", acc, judge.Report().Total, least)
			}
			if st.Total.Keys > maxKeys || int(st.Evictions) < flood {
				t.Errorf("%v: %d keys of %d, %d evictions", acc, st.Total.Keys, maxKeys, st.Evictions)
			}
			if err := n.Close(); err != nil {
				t.Error(err)
			}
		})
	}
}
