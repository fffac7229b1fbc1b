package syncer

import (
	"sync/atomic"

	"github.com/hybridlimit/hybrid/slice"
)

// Counts are what a limiter has done since it was made. Any goroutine may read
// them at any time; they are not one consistent snapshot.
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
	Recalled      atomic.Uint64 // tokens given back because they were scarce
	Dropped       atomic.Uint64 // slices that the store had forgotten when they were reported, and had no room for
	Rebuilt       atomic.Uint64 // accounts that were unreadable, or far ahead of the clock, and were replaced
	NotRun        atomic.Uint64 // settles that certainly failed
	Unknown       atomic.Uint64 // settles whose outcome is unknown
}

func (c *Counts) operation(g *slice.Grant) {
	c.Operations.Add(1)
	c.Granted.Add(uint64(g.Granted))
	if g.Dropped {
		c.Dropped.Add(1)
	}
	if g.Rebuilt {
		c.Rebuilt.Add(1)
	}
}

func (c *Counts) exact(allowed bool) { one(allowed, &c.ExactAllowed, &c.ExactDenied) }

func (c *Counts) policy(allowed bool) { one(allowed, &c.PolicyAllowed, &c.PolicyDenied) }

func one(which bool, yes, no *atomic.Uint64) {
	if which {
		yes.Add(1)
		return
	}
	no.Add(1)
}

// NodeCounts are what a node has done since it was made.
type NodeCounts struct {
	Calls        atomic.Uint64 // calls that carried settles
	MarkErrors   atomic.Uint64 // failed exchanges of scarcity marks
	BreakerOpens atomic.Uint64
}

// Collect brings the counts of slices and memories up to date.
func (l *Limiter) Collect() {
	now := l.s.Now()
	l.table.Range(func(a *Account) bool {
		a.mu.Lock()
		defer a.mu.Unlock()
		if a.contact() != nil {
			a.count(now)
		}
		return true
	})
}

// Keys returns how many keys the limiter remembers.
func (l *Limiter) Keys() int { return l.table.Len() }

// Name returns the limiter's name.
func (l *Limiter) Name() string { return l.name }

// Fleet returns the live nodes of the limiter as last heard; 0 before that.
func (l *Limiter) Fleet() int {
	roster := l.roster.Load()
	if roster == nil {
		return 0
	}
	return len(*roster)
}

// Evictions returns how many keys were forgotten because of MaxKeys.
func (s *Syncer) Evictions() uint64 { return s.ring.Evictions() }
