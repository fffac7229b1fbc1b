package syncer

import (
	"cmp"
	"slices"
	"strings"

	"github.com/hybridlimit/hybrid/internal/key"
)

// This file is for people who look at a node: one key's state, the keys that are denied
// most, the counts.

// Inspect returns what the node knows of a key; known is false for a key that it does not
// remember: then the view is that of a new one. user is the key as the caller gave
// it. It changes nothing, but that counts are brought up to date.
func (l *Limiter) Inspect(name, user string) (v View, known bool) {
	now := l.s.Now()
	if a, ok := l.table.Load(name); ok {
		a.RefreshPlan(now)
		if v, ok = a.view(now); ok {
			return v, true
		}
	}
	var own *Plan
	if l.planFor != nil {
		own = l.planFor(user)
	}
	v, _ = l.newAccount(name, user, own, now).view(now)
	return v, false
}

// Replies counts the store's replies about a key to this node, so that who reads the store
// beside them sees whether one has come meanwhile.
func (l *Limiter) Replies(name string) uint32 {
	if a, ok := l.table.Load(name); ok {
		return a.replies()
	}
	return 0
}

// view describes an account that is in use; false if it was retired.
func (a *Account) view(now int64) (v View, ok bool) {
	a.lock()
	defer a.unlock()
	if a.Known.Retired {
		return v, false
	}
	t := a.stepLocked(now)
	c := a.active.Load()
	if c != nil {
		t.Due = c.due
	}
	v = t.View(stateOf(c))
	v.Own = a.binding.Load().own != nil
	a.finishLocked(&t)
	return v, true
}

// Collect brings the counts of slices and memories up to date, of all limiters. It looks
// at every key, and takes the locks of those in touch with the store.
func (s *Syncer) Collect() {
	s.eachActive(func(a *Account) { a.update((*key.State).Count) })
}

// eachActive calls do for each account in touch with the store. Most are not, and have
// nothing to look at. An account may come twice.
func (s *Syncer) eachActive(do func(a *Account)) {
	s.ring.Each(func(a *Account) {
		if a.active.Load() != nil {
			do(a)
		}
	})
}

// Evictions returns how many keys were forgotten because of MaxKeys.
func (s *Syncer) Evictions() uint64 { return s.ring.Evictions() }

// leastDenials is the rate below which a key is as good as never denied: one denial is
// forgotten after three quarters of a minute.
const leastDenials = 0.001

// KeyDenials is how much a key is denied on this node.
type KeyDenials struct {
	Key   string  // as the account has it: a digest, if it is long
	Rate  float64 // requests per second, over ten seconds or so
	Total uint64  // requests since the account came in touch with the store
}

// Denied returns at most so many keys that this node denies, those first that it denies
// most often. It looks at every key like Collect.
func (l *Limiter) Denied(most int) []KeyDenials {
	if most <= 0 {
		return nil
	}
	var list []KeyDenials
	l.s.eachActive(func(a *Account) {
		if a.limiter() != l {
			return
		}
		v, ok := a.view(l.s.Now())
		if ok && v.Denials >= leastDenials {
			list = append(list, KeyDenials{Key: a.name, Rate: v.Denials, Total: v.Denied})
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
