package key

import (
	"math"
	"time"

	"github.com/hybridlimit/hybrid/precheck"
)

// ProbeInterval is when a denial by policy may be worth a retry: the store is probed
// about that often.
const ProbeInterval = time.Second

// Fallback answers: what may we admit while the store is silent? It is the node's fair
// share of the limit, as a local bucket.
type Fallback struct {
	bucket  precheck.Bucket
	started int64 // ns, when the bucket was made; 0: there is none
}

// shrinkMemory is how long a fleet that has shrunk keeps its shares: nodes that lose
// the store one after the other vanish for those that still have it, and go on
// admitting their own.
const shrinkMemory = int64(10 * time.Minute)

// nodesLately returns the largest fleet of the last ten minutes.
func (t *Step) nodesLately() float64 {
	return float64(t.Fleet.History().Largest(t.Now - shrinkMemory))
}

// shareSize returns the node's share of the limit: B/M and r/M, both halved for a window,
// where a full bucket and its refill add up (half a token more of an odd quota is
// never a whole one). A share of less than one token is of no use: then as many nodes
// as there are whole tokens get one each, chosen by a hash so that each key has other nodes.
func (t *Step) shareSize() precheck.Size {
	whole := precheck.Size{Cap: float64(t.Plan.Rule.Burst), Rate: t.Plan.ratePerNano()}
	if t.Plan.Rule.Window > 0 {
		whole = whole.Times(0.5)
		whole.Cap = math.Ceil(whole.Cap)
	}
	m := t.nodesLately()
	if nodes := math.Floor(whole.Cap); nodes < m {
		if nodes < 1 || float64(t.Fleet.Rank(t.Key)) >= nodes {
			return precheck.Size{}
		}
		m = nodes
	}
	size := whole.Over(m)
	size.Cap = math.Floor(size.Cap)
	return size
}

// shareStart is what the bucket holds when an outage begins: the share of what was
// free, and all of it for a key that the store was never asked about. Where a bucket that was
// not full has been evicted, it is not known whose it was: later ones start as
// if each had been that one.
func (t *Step) shareStart(size precheck.Size) float64 {
	start := size.Cap
	if !t.Known.Full(t.Now) {
		start = min(start, float64(t.Known.Free(t.Plan, t.Now))/t.nodesLately())
	}
	if t.Forgotten != 0 {
		start = min(start, size.Rate*float64(t.Now-t.Forgotten))
	}
	return start
}

// share returns the bucket that a key's requests are admitted from.
func (t *Step) share(own *Fallback) *Fallback {
	if t.Shared != nil {
		return t.Shared
	}
	return own
}

// take admits n tokens, or says when to retry.
func (f *Fallback) take(t *Step, n int64) (ok bool, retry time.Duration) {
	size := t.shareSize()
	if float64(n) > size.Cap {
		return false, ProbeInterval
	}
	if f.started == 0 {
		f.bucket.Set(t.shareStart(size), t.Now)
		f.started = max(t.Now, 1)
	}
	if !f.bucket.Take(t.Now, n, size) {
		return false, f.bucket.Wait(t.Now, n, size)
	}
	return true, 0
}

// lacks returns what the bucket lacks, which is what the account may be charged of its
// admissions: the rest has been earned again. 0 without a bucket.
func (f *Fallback) lacks(t *Step) float64 {
	if f.started == 0 {
		return 0
	}
	return f.bucket.Lack(t.Now, t.shareSize())
}

// level returns the tokens that could be admitted, without making a bucket.
func (f *Fallback) level(t *Step) float64 {
	size := t.shareSize()
	if f.started == 0 {
		return t.shareStart(size)
	}
	bucket := f.bucket
	return bucket.Level(t.Now, size)
}

// putBack returns tokens to the bucket.
func (f *Fallback) putBack(t *Step, tokens float64) {
	if f.started != 0 {
		f.bucket.Put(t.Now, int64(tokens), t.shareSize())
	}
}
