package hybrid

import (
	"context"
	"fmt"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/hybridlimit/hybrid/exact"
	"github.com/hybridlimit/hybrid/internal/ledger"
	"github.com/hybridlimit/hybrid/internal/oracle"
	"github.com/hybridlimit/hybrid/internal/redistest"
	"github.com/hybridlimit/hybrid/slice"
	"github.com/hybridlimit/hybrid/syncer"
)

// This file is more keys than fit into memory, which a client makes up to do harm.

// passing is a store that remembers only the accounts it is asked to watch. All
// others are new each time, as the keys of an attack are, so that what grows in a
// test is the node.
type passing struct {
	*ledger.Store
	watched func(account string) bool
}

func (s *passing) Settle(ctx context.Context, batch []*slice.Settle) {
	var kept []*slice.Settle
	clock := s.Clock()
	for _, st := range batch {
		if s.watched(st.Account) {
			kept = append(kept, st)
			continue
		}
		var a ledger.Account
		st.Grant, _ = a.Settle(clock, st.Rule, st.Usage)
		st.Outcome = slice.Ran
	}
	s.Store.Settle(ctx, kept)
}

// sampled is in the names of the keys whose limit is looked at.
const sampled = "sampled"

// attack is a node under a flood of keys, each of which comes once.
type attack struct {
	t      *testing.T
	node   *Node
	known  *Limiter // of the one key that was there before, 200 per second
	logins *Limiter // of the others, 5 per hour

	sent  atomic.Int64
	wrong atomic.Int64
	fresh [attackers]stopwatch // calls of fresh keys, by attacker
	calls stopwatch            // of the known key

	bare      bareTable
	control   [attackers]stopwatch // the same calls of the bare table
	bareCalls stopwatch            // and beside each of the known key, since who calls rarely meets more pauses
}

const (
	attackers = 4
	freshRate = 30_000 // fresh keys per second
)

func newAttack(t *testing.T, store syncer.Store, maxKeys int) *attack {
	t.Helper()
	opts, err := (&Options{MaxKeys: maxKeys, Logger: quiet(), StoreTimeout: time.Second}).withDefaults()
	if err != nil {
		t.Fatal(err)
	}
	a := &attack{t: t, node: newNode(store, opts)}
	a.known, err = a.node.Limiter("known", PerSecond(200), &LimiterOptions{Accuracy: Strict})
	if err != nil {
		t.Fatal(err)
	}
	a.logins, err = a.node.Limiter("logins", PerHour(5), nil)
	if err != nil {
		t.Fatal(err)
	}
	return a
}

// run floods the node with so many fresh keys while the known key goes on, and
// judges the limits.
func (a *attack) run(keys int) {
	a.t.Helper()
	stop, start := make(chan struct{}), time.Now()
	a.bare.open(a.node.opts.MaxKeys)
	defer a.bare.close()
	var flood, others sync.WaitGroup
	others.Go(func() { a.judge(a.insist(stop)) })
	for w := range attackers {
		flood.Go(func() { a.flood(w, keys, start) })
	}
	flood.Wait()
	took := time.Since(start)
	close(stop)
	others.Wait()
	st := a.node.Stats()
	a.t.Logf("%d keys in %v (%.0f/s): %d remembered, %d evictions", keys, took, float64(keys)/took.Seconds(), st.Total.Keys, st.Evictions)
	a.t.Logf("a fresh key took %v", together(&a.fresh))
	a.t.Logf("the known one %v", &a.calls)
	a.t.Logf("a bare table %v; beside the known key %v", together(&a.control), &a.bareCalls)
	if st.Total.Keys > a.node.opts.MaxKeys {
		a.t.Errorf("%d keys remembered, MaxKeys is %d", st.Total.Keys, a.node.opts.MaxKeys)
	}
}

// flood sends an attacker's part of the fresh keys, and one in a thousand of them
// seven times. Each fourth fifth of a second it sends them to the control instead.
func (a *attack) flood(attacker, keys int, start time.Time) {
	for i := 0; int(a.sent.Load()) < keys; i++ {
		due := time.Duration(i) * attackers * time.Second / freshRate
		if i%16 == 0 {
			time.Sleep(due - time.Since(start))
		}
		if due/(time.Second/5)%4 == 3 {
			key := fmt.Sprint("key ", attacker, i)
			a.control[attacker].time(func() { a.bare.call(key) })
			continue
		}
		n := a.sent.Add(1)
		if n%1000 == 0 {
			a.sample(fmt.Sprint(sampled, n))
			continue
		}
		key := fmt.Sprint("key ", n)
		a.fresh[attacker].time(func() {
			if r, err := a.logins.Allow(ctx, key); err != nil || !r.Allowed {
				a.mistake("%q, seen for the first time: %+v, %v", key, r, err)
			}
		})
	}
}

// sample uses a key's limit up.
func (a *attack) sample(key string) {
	for i := range 7 {
		if r, err := a.logins.Allow(ctx, key); err != nil || r.Allowed != (i < 5) {
			a.mistake("%q of 5 per hour, request %d: %+v, %v", key, i, r, err)
		}
	}
}

func (a *attack) mistake(format string, args ...any) {
	if a.wrong.Add(1) < 5 {
		a.t.Errorf(format, args...)
	}
}

// insist asks for the known key at 1.4 times its limit.
func (a *attack) insist(stop <-chan struct{}) (asked []oracle.Request) {
	everyFew(stop, time.Second/280, func() {
		a.calls.time(func() {
			at := time.Now().UnixNano()
			r, err := a.known.Allow(ctx, "known")
			if err != nil || r.Path == PathFallback {
				a.mistake("the known key: %+v, %v", r, err)
			}
			asked = append(asked, oracle.Request{At: at, Cost: 1, Allowed: r.Allowed})
		})
		a.bareCalls.time(func() { a.bare.call("known") })
	})
	return asked
}

// judge holds what the known key got against what it should. Each request is
// noted before its call, by up to the longest call too early.
func (a *attack) judge(asked []oracle.Request) {
	limit := oracle.New(200, time.Second, 200+int64(200*a.calls.longest().Seconds())+1)
	if err := limit.Check(oracle.Admissions(asked)).Err(); err != nil {
		a.t.Errorf("the known key: %v", err)
	}
	if ideal := oracleOf(PerSecond(200)).Compare(asked); ideal.Ratio() < 0.95 {
		a.t.Errorf("%d of the known key admitted, a perfect limiter admits %d", ideal.Admitted, ideal.Ideal)
	}
}

// everyFew calls f each time that so much time has passed, until stop is closed.
func everyFew(stop <-chan struct{}, gap time.Duration, f func()) {
	tick := time.NewTicker(gap)
	defer tick.Stop()
	for {
		select {
		case <-stop:
			return
		case <-tick.C:
			f()
		}
	}
}

// together is what all attackers measured.
func together(parts *[attackers]stopwatch) *stopwatch {
	var all stopwatch
	for i := range parts {
		all.took = append(all.took, parts[i].took...)
	}
	return &all
}

// watchedOnly is a store in memory that remembers the known key and samples.
func watchedOnly() syncer.Store {
	return &passing{ledger.NewStore(), func(account string) bool {
		return strings.Contains(account, sampled) || strings.HasPrefix(account, "5:known")
	}}
}

// attackSize is how many keys attack, and how many the node may remember.
func attackSize() (keys, maxKeys int) {
	if *full {
		return 10_000_000, 1_000_000
	}
	return 80_000, 8_000
}

// heap is the live bytes.
func heap() int64 {
	runtime.GC()
	runtime.GC() // what finalizers and pools held
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

// A client that makes up a key for each request gets nobody's limit, makes nobody
// wait, and what it has pushed out leaves nothing behind: memory is bounded by
// MaxKeys alone, however fast fresh keys come.
func TestAttackOfDistinctKeys(t *testing.T) {
	longUnderRace(t)
	keys, maxKeys := attackSize()
	before := heap()
	a := newAttack(t, watchedOnly(), maxKeys)
	a.run(keys)
	// What the machine does at the worst of times it does to whoever calls just then.
	most := max(time.Millisecond, 10*together(&a.control).part(0.999), 10*a.bareCalls.part(0.999))
	for _, watch := range []*stopwatch{together(&a.fresh), &a.calls} {
		if got := watch.part(0.999); got > most {
			t.Errorf("p99.9 is %v, allowed %v", got, most)
		}
	}
	a.fresh, a.control = [attackers]stopwatch{}, [attackers]stopwatch{}
	a.calls, a.bareCalls, a.bare = stopwatch{}, stopwatch{}, bareTable{}
	perKey := float64(heap()-before) / float64(maxKeys)
	t.Logf("%.0f bytes of heap for each key of MaxKeys", perKey)
	if perKey > 1000 {
		t.Errorf("%.0f bytes of heap for each key of MaxKeys, allowed 1000", perKey)
	}
	_ = a.node.Close() // there may be more to settle than fits into its second
	runtime.KeepAlive(a)
}

// The same on a real Redis, which remembers all of them for a while.
func TestAttackOfDistinctKeysOnRedis(t *testing.T) {
	keys, maxKeys := 20_000, 2_000
	if *full {
		keys, maxKeys = 1_000_000, 100_000
	}
	rdb := redistest.Start(t).Client(t)
	store, err := exact.New(rdb, nil)
	if err != nil {
		t.Fatal(err)
	}
	a := newAttack(t, store, maxKeys)
	a.run(keys)
	if n := rdb.DBSize(ctx).Val(); n < int64(keys) {
		t.Errorf("Redis remembers %d keys of %d", n, keys)
	}
	_ = a.node.Close()
}
