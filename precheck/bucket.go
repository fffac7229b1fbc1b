package precheck

import (
	"math"
	"time"
)

// Size is what a bucket holds and how fast it fills.
type Size struct {
	Cap  float64 // tokens
	Rate float64 // tokens per nanosecond
}

// Over returns the size divided by n.
func (s Size) Over(n float64) Size { return Size{Cap: s.Cap / n, Rate: s.Rate / n} }

// Times returns the size multiplied by f.
func (s Size) Times(f float64) Size { return Size{Cap: s.Cap * f, Rate: s.Rate * f} }

// Bucket is a token bucket that stores a level at a moment, never a debt: when
// its size grows, the new tokens must be earned. The size comes with each call,
// for it changes with the fleet and the limit. The zero Bucket is empty since
// the moment 0: call Set before use. The caller holds the lock.
type Bucket struct {
	level float64 // tokens at the moment at, ≥ 0
	at    int64
}

// Set gives the bucket a level.
func (b *Bucket) Set(level float64, now int64) { *b = Bucket{level: max(level, 0), at: now} }

// Advance fills the bucket up to now. A moment in the past fills nothing; a
// smaller size takes effect at once.
func (b *Bucket) Advance(now int64, size Size) {
	if now > b.at {
		b.level += size.Rate * float64(now-b.at)
		b.at = now
	}
	b.level = max(min(b.level, size.Cap), 0)
}

// Take takes n tokens, all or none.
func (b *Bucket) Take(now, n int64, size Size) bool {
	b.Advance(now, size)
	if float64(n) > b.level {
		return false
	}
	b.level -= float64(n)
	return true
}

// Put returns n tokens.
func (b *Bucket) Put(now, n int64, size Size) {
	b.level += float64(n)
	b.Advance(now, size)
}

// Level returns the tokens in the bucket.
func (b *Bucket) Level(now int64, size Size) float64 {
	b.Advance(now, size)
	return b.level
}

// Lack returns the tokens that are missing in the bucket.
func (b *Bucket) Lack(now int64, size Size) float64 {
	return max(size.Cap-b.Level(now, size), 0)
}

// Wait returns the time until n tokens are there: never less than 0, rounded
// up, and math.MaxInt64 if they never will be.
func (b *Bucket) Wait(now, n int64, size Size) time.Duration {
	missing := float64(n) - b.Level(now, size)
	if missing <= 0 {
		return 0
	}
	wait := math.Ceil(missing / size.Rate)
	switch {
	case float64(n) > size.Cap || size.Rate <= 0:
		return math.MaxInt64
	case wait >= math.MaxInt64:
		return math.MaxInt64 - 1 // long, and not never
	}
	return time.Duration(wait)
}
