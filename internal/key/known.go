package key

import (
	"math"
	"sync/atomic"
	"time"

	"github.com/hybridlimit/hybrid/slice"
)

// Known is what this node knows of a key's account: what the store last answered, aged
// since, with what this node has done itself and the store has not heard of. It
// lies beside the cell, where a request finds it without another cache miss.
//
// Two words say it. fullAt is when the account will be full again if it is not used: of a
// token bucket, used = rate · (fullAt − now). A window is full at its end, so the
// second word says how much of it is free. Of a bucket the second word says how much is
// lent: what is lent does not drain.
//
// Writer: the holder of the account's lock. Readers: every request. The words are read
// one by one and may be of different replies, so one Result can mix two answers
// of the store; the next is right again.
type Known struct {
	fullAt atomic.Int64  // ns; in the past: the account is full
	tokens atomic.Uint32 // a float32 of whole tokens: free of a window, lent of a bucket
	Flags
}

// Flags are the account's own. They lie here because the space would be padding: a
// million keys save 16 MB. All are under the account's lock.
type Flags struct {
	Retired      bool  // it has left the table: its holder must look the key up again
	Untracked    bool  // it never had a place in the table, which is full of busy ones
	FloorStarted bool  // the floor has its first level
	Uses         uint8 // 0: none, 1: one request, 2: another since the table last looked
}

// Touch notes that the account serves a request on the slow path. The request that it
// was made for does not count, or a flood of keys that are used once would push out
// the keys in use.
func (f *Flags) Touch() { f.Uses = min(f.Uses+1, 2) }

// Touched reports whether it has served another request since the last call.
func (f *Flags) Touched() bool {
	was := f.Uses == 2
	f.Uses = min(f.Uses, 1)
	return was
}

// Learn takes over the store's reply to a settle.
func (k *Known) Learn(rule slice.Rule, g *slice.Grant, now int64) {
	tokens := float64(g.Lent)
	if rule.Window > 0 {
		tokens = max(float64(rule.Burst)-g.Used, 0)
	}
	k.tokens.Store(floatBits(tokens))
	k.fullAt.Store(saturatingAdd(now, int64(slice.ResetAfter(rule, *g))))
}

// Start says that the account is full, as far as this node knows.
func (k *Known) Start(now int64) {
	k.tokens.Store(0)
	k.fullAt.Store(now)
}

// Use counts tokens that this node has taken without asking (negative: given back).
func (k *Known) Use(p *Plan, tokens float64, now int64, left time.Duration) {
	if !p.Stored() {
		return
	}
	if p.Rule.Window == 0 {
		used := max(k.used(p, now)+tokens, 0)
		k.fullAt.Store(saturatingAdd(now, clampNanos(math.Ceil(used*p.nanos))))
		return
	}
	free := min(max(k.free(p, now)-tokens, 0), float64(p.Rule.Burst))
	if k.Full(now) {
		k.fullAt.Store(saturatingAdd(now, int64(left)))
	}
	k.tokens.Store(floatBits(free))
}

// Full reports whether an account that is not used would be full.
func (k *Known) Full(now int64) bool { return now >= k.fullAt.Load() }

// FullIn returns the time until it is full.
func (k *Known) FullIn(now int64) time.Duration { return time.Duration(max(k.fullAt.Load()-now, 0)) }

// Free returns the tokens that are free, rounded down: what a node believes to be free
// is never too much.
func (k *Known) Free(p *Plan, now int64) int64 { return int64(k.free(p, now)) }

func (k *Known) free(p *Plan, now int64) float64 {
	switch {
	case k.Full(now):
		return float64(p.Rule.Burst)
	case p.Rule.Window > 0:
		return k.float()
	}
	return max(float64(p.Rule.Burst)-k.used(p, now), 0)
}

// used returns the tokens of a bucket that are taken: those that drain, and never less
// than those that are lent.
func (k *Known) used(p *Plan, now int64) float64 {
	left := k.fullAt.Load() - now
	if left <= 0 {
		return 0
	}
	return max(p.perNano*float64(left)-p.slack, k.float())
}

// Reading is the two words at a moment, for a Result.
type Reading struct {
	left   int64 // ns until the account is full
	tokens uint32
}

// Read reads them. A request does so before it takes from the cell: no later read can
// overtake its compare-and-swap.
func (k *Known) Read(now int64) Reading { return Reading{k.fullAt.Load() - now, k.tokens.Load()} }

// View returns what a Result says of the key: the limit, the tokens remaining, and
// the time until the full limit is free again. Both are of one state: the node's
// own slice counts as remaining, and does not hold up the reset.
func (r Reading) View(p *Plan, own int64) (limit, remaining int64, reset time.Duration) {
	limit = p.Burst
	tokens := float64(math.Float32frombits(r.tokens))
	switch {
	case p.Never:
		return limit, 0, 0
	case r.left <= 0 || p.Always:
		return limit, limit, 0
	case p.Rule.Window > 0:
		return limit, min(int64(tokens)+own, limit), time.Duration(r.left)
	}
	left := float64(r.left)
	if lent := tokens * p.nanos; lent > left {
		left = lent // what is lent does not drain
	}
	left -= float64(own) * p.nanos
	used := p.perNano*left - p.slack
	if used <= 0 {
		return limit, limit, 0
	}
	remaining = min(max(Whole(float64(p.Rule.Burst)-used), 0), limit)
	return limit, remaining, time.Duration(min(left, float64(slice.Never-1)))
}

// Whole returns the whole tokens that are shown. A hundredth may be missing from one: times
// are a tick or a round trip old, and 9 less 3.0002 would show as 5.
func Whole(tokens float64) int64 { return int64(tokens + 0.01) }

func (k *Known) float() float64 { return float64(math.Float32frombits(k.tokens.Load())) }

// floatBits packs whole tokens into a float32, rounded down. It is exact up to 2^24, and
// then to seven digits.
func floatBits(tokens float64) uint32 {
	tokens = math.Floor(tokens)
	f := float32(tokens)
	if float64(f) > tokens {
		f = math.Nextafter32(f, 0)
	}
	return math.Float32bits(f)
}

func saturatingAdd(a, b int64) int64 {
	if b >= math.MaxInt64-a {
		return math.MaxInt64 - 1 // MaxInt64 means never
	}
	return a + b
}
