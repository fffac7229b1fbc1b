package syncer

import (
	"cmp"
	"slices"
	"strings"
	"time"
)

// This file is which keys are denied most. It is counted where denials are counted
// anyway, in the books of accounts in touch with the store, and looked up on request.

// denialSpan is the time constant of an account's rate of denials: what a person who
// looks on takes for now.
const denialSpan = int64(10 * time.Second)

// deny counts requests that were denied since the last call, perhaps none.
func (b *books) deny(requests, now int64) {
	b.denials.add(float64(requests), now, denialSpan)
	b.denied += uint64(requests)
}

// denialRate returns the requests per second that are denied, as of the last call of
// deny.
func (b *books) denialRate() float64 { return b.denials.over(int64(time.Second), denialSpan) }

// leastDenials is the rate below which an account is as good as never denied: one
// denial is forgotten after three quarters of a minute.
const leastDenials = 0.001

// KeyDenials is how much a key is denied on this node.
type KeyDenials struct {
	Key   string  // as the account has it: a digest, if it is long
	Rate  float64 // requests per second, over ten seconds or so
	Total uint64  // requests since the account came in touch with the store
}

// Denied returns at most so many keys that this node denies, those first that it
// denies most often. It looks at every key like Collect.
func (l *Limiter) Denied(most int) []KeyDenials {
	if most <= 0 {
		return nil
	}
	var list []KeyDenials
	now := l.s.Now()
	l.s.inTouch(func(a *Account, c *contact) {
		if a.dead || a.limiter() != l {
			return
		}
		a.count(now)
		if rate := c.denialRate(); rate >= leastDenials {
			list = append(list, KeyDenials{Key: a.key, Rate: rate, Total: c.denied})
		}
		if len(list) >= 1024 && len(list)/2 >= most {
			list = mostDenied(list, most)
		}
	})
	return mostDenied(list, most)
}

// mostDenied returns the first of a list, in order, each key once.
func mostDenied(list []KeyDenials, most int) []KeyDenials {
	slices.SortFunc(list, func(a, b KeyDenials) int {
		return cmp.Or(cmp.Compare(b.Rate, a.Rate), strings.Compare(a.Key, b.Key))
	})
	seen, kept := make(map[string]bool), list[:0]
	for _, d := range list {
		if len(kept) < most && !seen[d.Key] {
			seen[d.Key] = true
			kept = append(kept, d)
		}
	}
	return kept
}
