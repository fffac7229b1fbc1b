package hybrid

import (
	"math/rand/v2"
	"testing"
	"time"
)

// setLimit gives nodes a new limit.
func (f *fleet) setLimit(l Limit, nodes ...*Limiter) {
	f.t.Helper()
	for _, lim := range nodes {
		if err := lim.SetLimit(l); err != nil {
			f.t.Error(err)
		}
	}
}

// longestDenial returns the longest time without an admission of k, from a
// moment until now.
func (f *fleet) longestDenial(from time.Time) (longest time.Duration) {
	f.mu.Lock()
	defer f.mu.Unlock()
	last := from.UnixNano()
	for _, r := range f.requests["k"] {
		if r.Allowed && r.At >= last {
			longest, last = max(longest, time.Duration(r.At-last)), r.At
		}
	}
	return max(longest, time.Duration(time.Now().UnixNano()-last))
}

// fillTime is how long a bucket takes to fill.
func fillTime(l Limit) time.Duration {
	return time.Duration(float64(l.Burst()) / float64(l.Count()) * float64(l.Period()))
}

// Nodes of two limits share one account while a deploy rolls. Each judges by
// its own limit: the account needs no rule for it.
func TestRollingDeploy(t *testing.T) {
	high, low := PerSecond(1000), PerSecond(100)
	both(t, strict(4, high), func(f *fleet) {
		rng := rand.New(rand.NewPCG(1, 1))
		f.load(rng, 1300, time.Second, uniform, 1)
		f.setLimit(low, f.lims[:2]...)
		f.load(rng, 1300, time.Second, uniform, 1)
		f.setLimit(low, f.lims[2:]...)
		all, before := time.Now(), f.used("k")
		f.load(rng, 300, 2*time.Second, uniform, 1)
		f.checkDenial(all, high, low)
		if got := f.used("k") - before; got > 300 {
			f.t.Errorf("%d admitted in 2 s of 100/s and a burst of 100", got)
		}
		f.checkBound(high, f.late())
		f.checkCost()
		f.checkLeasesEnd(low)
	})
}

// checkDenial fails the test if nobody was admitted for longer than the old
// limit takes to fill, and a node to ask again: an eighth of the new limit's fill.
func (f *fleet) checkDenial(from time.Time, old, new Limit) {
	f.t.Helper()
	most := fillTime(old) + min(fillTime(new)/8, 10*time.Second)
	if d := f.longestDenial(from); d > most {
		f.t.Errorf("from %v to %v: nobody was admitted for %v, want at most %v", old, new, d, most)
	}
}

// late is the part that bounds are exceeded by in real time because admissions
// are stamped late, by milliseconds. Virtual time stands still for a stamp.
func (f *fleet) late() float64 {
	if f.mini != nil {
		return 0
	}
	return 0.02
}

// checkLeasesEnd kills all nodes and fails the test if anything is lent two
// epochs later. It takes two minutes, so only in virtual time.
func (f *fleet) checkLeasesEnd(l Limit) {
	f.t.Helper()
	if f.mini == nil {
		return
	}
	for node := range f.nodes {
		if !f.gone[node] {
			f.kill(node)
		}
	}
	f.ending.Wait()
	time.Sleep(2 * time.Minute)
	if lent := f.state("k", l).Lent; lent != 0 {
		f.t.Errorf("%d lent after two epochs", lent)
	}
}

// The limit of all nodes changes at one moment, with slices out, up and down.
func TestLimitOfAll(t *testing.T) {
	for _, pair := range [][2]Limit{
		{PerSecond(1000), PerMinute(1000)},
		{PerMinute(1000), PerSecond(1000)},
		{PerSecond(1000), PerSecond(100)},
	} {
		inBubble(t, strict(4, pair[0]), func(f *fleet) {
			rng := rand.New(rand.NewPCG(1, 1))
			f.load(rng, pair[0].Rule().Rate*1.3e6, fillTime(pair[0])+5*time.Second, uniform, 1)
			f.setLimit(pair[1], f.lims...)
			all := time.Now()
			f.load(rng, pair[1].Rule().Rate*1.3e6, 20*time.Second, uniform, 1)
			f.checkDenial(all, pair[0], pair[1])
			f.checkCost()
			f.checkLeasesEnd(pair[1])
		})
	}
}

// Half a million of a million a day are used, and the limit becomes ten a day:
// they would take centuries to drain at that rate.
func TestMillionToTen(t *testing.T) {
	before, after := PerDay(1_000_000), PerDay(10)
	for _, slices := range []bool{false, true} {
		inBubble(t, strict(4, before), func(f *fleet) {
			f.ask(1, "k", 500_000)
			if slices {
				f.everyone(50, 10*time.Second, "k", 1)
				if f.state("k", before).Lent == 0 {
					t.Error("no slice is out")
				}
			}
			f.setLimit(after, f.lims...)
			deploy := time.Now()
			time.Sleep(30 * time.Second)
			if r := f.ask(2, "k", 1); r.Allowed {
				t.Errorf("slices out: %v: admitted with half a million used of ten", slices)
			}
			f.leaveAll() // the denial is the store's
			time.Sleep(time.Until(deploy.Add(fillTime(before))))
			f.add(strict(1, after))
			if r := f.ask(len(f.nodes)-1, "k", 1); !r.Allowed {
				t.Errorf("slices out: %v: still denied after one old fill time, for %v more", slices, f.ttl("k"))
			}
		})
	}
}
