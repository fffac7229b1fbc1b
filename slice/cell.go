package slice

import (
	"math"
	"sync/atomic"
)

// Cell is the tokens that one node may admit from for one key, and the tick at
// which they die: one atomic word, so that no request ever pairs the tokens of
// one lease with the life of another.
//
// Invariant: the tokens in the cell are covered by the account in the store
// until the expiry. Takes come from any goroutine and only lower the tokens;
// everything else is done by whoever holds the account's lock, so a settle
// never races with another settle over one cell.
//
// The zero Cell is empty and ready to use.
type Cell struct {
	word atomic.Uint64 // expiry Tick << 32 | tokens
	low  atomic.Uint32 // ask for a refill when the tokens fall to this
	cost atomic.Uint32 // the largest cost above 1 taken since LargestCost was last read
}

func pack(t Tick, tokens int64) uint64       { return uint64(t)<<32 | uint64(tokens) }
func unpack(w uint64) (t Tick, tokens int64) { return Tick(w >> 32), int64(uint32(w)) }

// Take takes n ≥ 1 tokens, if the cell holds so many and dead has not reached
// its expiry. It returns the tokens that are left. It reads no clock, takes no
// lock and allocates nothing.
//
// The watermark is loaded in each round, after the word: the word that the
// compare-and-swap confirms was alive when it was loaded. The cost is noted
// before it, so that who sees the tokens gone sees the cost too, and does not
// take one large request for many small ones.
func (c *Cell) Take(n int64, dead *Watermark) (left int64, ok bool) {
	for {
		w := c.word.Load()
		expiry, tokens := unpack(w)
		if n > tokens || !expiry.After(dead.Now()) {
			return 0, false
		}
		if n > 1 {
			c.noteCost(n)
		}
		if c.word.CompareAndSwap(w, w-uint64(n)) {
			return tokens - n, true
		}
	}
}

// TakeUpTo takes at most n tokens, for a use that was not asked for, and returns how
// many, and what is left. It is no request: its size says nothing about what requests cost.
func (c *Cell) TakeUpTo(n int64, dead *Watermark) (taken, left int64) {
	for {
		w := c.word.Load()
		expiry, tokens := unpack(w)
		if !expiry.After(dead.Now()) {
			return 0, 0
		}
		taken = min(n, tokens)
		if c.word.CompareAndSwap(w, w-uint64(taken)) {
			return taken, tokens - taken
		}
	}
}

// noteCost keeps the largest cost.
func (c *Cell) noteCost(n int64) {
	for {
		old := c.cost.Load()
		if uint32(n) <= old || c.cost.CompareAndSwap(old, uint32(n)) {
			return
		}
	}
}

// Crossed reports whether the take of n that left so many tokens was the one
// that reached the low-water mark: exactly one take per filling is.
func (c *Cell) Crossed(left, n int64) bool {
	low := int64(c.low.Load())
	return left <= low && left+n > low
}

// SetLow sets the low-water mark.
func (c *Cell) SetLow(tokens int64) { c.low.Store(uint32(min(tokens, math.MaxUint32))) }

// LargestCost returns the largest cost taken since the last call, and at least
// 1 if anything could have been taken.
func (c *Cell) LargestCost() int64 {
	if c.cost.Load() == 0 {
		return 1
	}
	return int64(c.cost.Swap(0))
}

// Tokens returns the tokens in the cell, alive or dead.
func (c *Cell) Tokens() int64 {
	_, tokens := unpack(c.word.Load())
	return tokens
}

// Alive returns the tokens that a Take could get.
func (c *Cell) Alive(dead *Watermark) int64 {
	expiry, tokens := unpack(c.word.Load())
	if !expiry.After(dead.Now()) {
		return 0
	}
	return tokens
}

// Expired reports whether the cell's expiry has passed.
func (c *Cell) Expired(dead *Watermark) bool {
	expiry, _ := unpack(c.word.Load())
	return !expiry.After(dead.Now())
}

// withhold leaves at most keep tokens in the cell and returns how many there
// were. What it removed can no longer be spent, so it can be offered back.
func (c *Cell) withhold(keep int64) (before int64) {
	for {
		w := c.word.Load()
		expiry, tokens := unpack(w)
		if tokens <= keep || c.word.CompareAndSwap(w, pack(expiry, keep)) {
			return tokens
		}
	}
}

// add puts tokens into the cell without touching its expiry.
func (c *Cell) add(tokens int64) { c.word.Add(uint64(tokens)) }

// renew adds tokens and moves the expiry, in one step.
func (c *Cell) renew(expiry Tick, tokens int64) {
	for {
		w := c.word.Load()
		_, have := unpack(w)
		if c.word.CompareAndSwap(w, pack(expiry, have+tokens)) {
			return
		}
	}
}

// clear empties the cell and returns the tokens that nobody will spend any more.
func (c *Cell) clear() (tokens int64) {
	_, tokens = unpack(c.word.Swap(0))
	return tokens
}

// Left returns for how many nanoseconds after a moment the cell is alive, rounded
// down to ticks; below 0 if it was dead by then.
func (c *Cell) Left(ns int64) int64 {
	expiry, _ := unpack(c.word.Load())
	return int64(int32(expiry-TickAt(ns))) * int64(TickLength)
}
