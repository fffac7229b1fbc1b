package slice

import (
	"runtime"
	"testing"
)

// A stress that no fault can fail proves nothing: each of these breaks one
// operation the way that a careless change would, and is found.
func TestTheStressFindsFaults(t *testing.T) {
	for name, flaw := range map[string]func(*operations){
		"a take in two steps":                  func(o *operations) { o.take = takeInTwoSteps },
		"a take that does not look at the end": func(o *operations) { o.take = takeOfTheDead },
		"a report in two steps":                func(o *operations) { o.report = reportInTwoSteps },
		"returns stay until the reply":         func(o *operations) { o.report = reportWithoutRemoval },
		"a renewal in two steps":               func(o *operations) { o.ran = ranInTwoSteps },
		"a refund in two steps":                func(o *operations) { o.giveBack = giveBackInTwoSteps },
		"a refund of what was not spent":       func(o *operations) { o.giveBack = giveBackBlindly },
		"a watermark that moves back":          func(o *operations) { o.pass = passInTwoSteps },
	} {
		t.Run(name, func(t *testing.T) {
			broken := sound
			flaw(&broken)
			for range 50 {
				s := newStress(sizes{grant: 200, costs: []int64{1, 2, 3, 7}}, broken)
				s.run(2000)
				if bad := s.faults(); len(bad) > 0 {
					t.Logf("found: %v", bad)
					return
				}
			}
			t.Error("not found")
		})
	}
}

func takeInTwoSteps(c *Cell, n int64, dead *Watermark) (left int64, ok bool) {
	expiry, tokens := unpack(c.word.Load())
	if n > tokens || !expiry.After(dead.Now()) {
		return 0, false
	}
	c.noteCost(n)
	runtime.Gosched()
	c.word.Store(pack(expiry, tokens-n))
	return tokens - n, true
}

func takeOfTheDead(c *Cell, n int64, _ *Watermark) (left int64, ok bool) {
	never := new(Watermark)
	expiry, _ := unpack(c.word.Load())
	never.word.Store(uint32(expiry - 1))
	return c.Take(n, never)
}

func reportInTwoSteps(l *Lease, c *Cell, keep int64) Usage {
	if l.inDoubt || !l.Holds() {
		return l.Report(c, keep)
	}
	w := c.word.Load()
	runtime.Gosched()
	c.word.Store(w)
	return l.Report(c, keep)
}

func reportWithoutRemoval(l *Lease, c *Cell, keep int64) Usage {
	u := l.Report(c, keep)
	c.add(u.Returned)
	return u
}

func ranInTwoSteps(l *Lease, c *Cell, g Grant, expiry Tick) (lost, spent int64) {
	w := c.word.Load()
	runtime.Gosched()
	c.word.Store(w)
	return l.Ran(c, g, expiry)
}

func giveBackInTwoSteps(l *Lease, c *Cell, n int64, dead *Watermark) bool {
	if !l.Holds() || c.Expired(dead) || l.Unreported(c) < n {
		return false
	}
	expiry, tokens := unpack(c.word.Load())
	runtime.Gosched()
	c.word.Store(pack(expiry, tokens+n))
	return true
}

func giveBackBlindly(l *Lease, c *Cell, n int64, _ *Watermark) bool {
	if l.Holds() {
		c.add(n)
	}
	return l.Holds()
}

func passInTwoSteps(w *Watermark, t Tick) {
	if t.After(w.Now()) {
		runtime.Gosched()
		w.word.Store(uint32(t))
	}
}
