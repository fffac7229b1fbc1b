package syncer

import (
	"sync/atomic"

	"github.com/hybridlimit/hybrid/internal/key"
	"github.com/hybridlimit/hybrid/slice"
)

// Counts are what a limiter has done since it was made. Any goroutine may read them at
// any time; they are not one consistent snapshot.
type Counts struct {
	SliceTokens atomic.Uint64 // tokens admitted from slices, as far as accounts were looked at

	Floor         atomic.Uint64 // requests admitted by floors
	ExactAllowed  atomic.Uint64 // requests that the store admitted
	ExactDenied   atomic.Uint64
	MemoDenied    atomic.Uint64 // requests denied from memory, as far as accounts were looked at
	PolicyAllowed atomic.Uint64 // requests judged by the failure policy
	PolicyDenied  atomic.Uint64
	Blocked       atomic.Uint64 // requests that waited for the store
	Shadowed      atomic.Uint64 // requests allowed only because the limiter is in shadow mode
	InvalidTiers  atomic.Uint64 // answers of LimitFor that were no limit
	Operations    atomic.Uint64 // settles that the store executed
	Granted       atomic.Uint64 // tokens granted to slices
	Recalled      atomic.Uint64 // tokens returned because they were scarce
	Returned      atomic.Uint64 // tokens that the store has taken back, for whatever reason
	Expired       atomic.Uint64 // tokens of slices that were not spent and that the store did not take back
	Dropped       atomic.Uint64 // slices that the store had forgotten when they were reported, and had no room for
	Rebuilt       atomic.Uint64 // accounts that were unreadable, or far ahead of the clock, and were replaced
	NotRun        atomic.Uint64 // settles that certainly failed
	Unknown       atomic.Uint64 // settles whose outcome is unknown
}

// add adds what a step has counted.
func (c *Counts) add(t *key.Tally) {
	if *t == (key.Tally{}) {
		return
	}
	for _, n := range []struct {
		count *atomic.Uint64
		more  int64
	}{
		{&c.SliceTokens, t.SliceTokens}, {&c.MemoDenied, t.MemoDenied},
		{&c.ExactAllowed, t.ExactAllowed}, {&c.ExactDenied, t.ExactDenied},
		{&c.PolicyAllowed, t.PolicyAllowed}, {&c.PolicyDenied, t.PolicyDenied},
		{&c.Floor, t.Floor}, {&c.Recalled, t.Reclaimed}, {&c.Expired, t.Expired},
	} {
		if n.more != 0 {
			n.count.Add(uint64(n.more))
		}
	}
}

// settled counts a settle that has ended.
func (c *Counts) settled(st *slice.Settle) {
	switch {
	case st == nil:
	case st.Outcome == slice.Ran:
		c.operation(&st.Usage, &st.Grant)
	case st.Outcome == slice.NotRun:
		c.NotRun.Add(1)
	default:
		c.Unknown.Add(1)
	}
}

// operation counts a settle that the store executed. A report that it ignored is not
// counted as what it says.
func (c *Counts) operation(u *slice.Usage, g *slice.Grant) {
	c.Operations.Add(1)
	c.Granted.Add(uint64(g.Granted))
	if g.Dropped {
		c.Dropped.Add(1)
		c.Expired.Add(uint64(u.Returned))
	} else {
		c.Returned.Add(uint64(u.Returned))
	}
	if g.Rebuilt {
		c.Rebuilt.Add(1)
	}
}
