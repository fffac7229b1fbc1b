package key

import "github.com/hybridlimit/hybrid/precheck"

// polling answers, of an exhausted key: when do we ask again, and what do callers hear
// until then?
//
// While a key is exhausted no request asks the store. The node polls once per interval for
// all its callers, and denies from memory in between; the denial says when to come back.
type polling struct {
	exhausted       bool
	next            int64          // ns, of the next poll
	promisedRetryAt int64          // ns, the earliest retry time that a caller was given and that is still to come
	deny            *precheck.Memo // the costs that are denied from memory; nil: none
}

// Deny returns the deny cache, which the shell publishes for requests to read without
// the lock.
func (s *State) Deny() *precheck.Memo { return s.poll.deny }

// denies reports whether the deny cache answers at all.
func (p *polling) denies(now int64) bool { return p.deny != nil && now < p.deny.Until }

// drop empties the deny cache.
func (p *polling) drop() { p.deny = nil }

// stretch makes the denial outlast the time that callers were given: who comes back then
// is denied from memory once more, which saves an operation. No denial lasts for more than
// 10 s, or a Reset on another node would be seen too late.
func (p *polling) stretch(now, ns int64) {
	m, most := p.deny, now+int64(longestPoll)
	if m == nil || m.Until >= most {
		return
	}
	until := min(max(m.Until, min(m.Retry, most))+ns, most)
	p.deny = &precheck.Memo{Cost: m.Cost, Until: until, Retry: m.Retry}
	p.next = max(p.next, until)
}

// cost returns the cost that the deny cache answers for, or else the unit.
func (p *polling) cost(unit int64) int64 {
	if p.deny != nil {
		return p.deny.Cost
	}
	return unit
}

// refuse remembers a refused cost until the next answer is due. Callers were told to
// come back at the promised time: unless that is over, this denial ends by then.
func (p *polling) refuse(cost int64, ends, freeAt int64, promiseOver bool, now int64, free float64) {
	if !promiseOver {
		ends = min(ends, p.promisedRetryAt)
	}
	retry := max(ends, freeAt)
	if promiseOver || retry < p.promisedRetryAt {
		p.promisedRetryAt = retry
	}
	if p.denies(now) && float64(p.deny.Cost) > free {
		cost = min(cost, p.deny.Cost)
	}
	p.next = min(p.next, ends)
	p.deny = &precheck.Memo{Cost: cost, Until: ends, Retry: retry}
}
