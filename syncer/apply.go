package syncer

import (
	"math"
	"time"

	"github.com/hybridlimit/hybrid/precheck"
	"github.com/hybridlimit/hybrid/slice"
)

// apply ends the settle under way: the slice takes what was granted, the
// callers get their answers, and what comes next is decided. st is the settle
// as prepared, with the outcome filled in; nil if nothing had to be sent.
func (a *Account) apply(st *slice.Settle) {
	s := a.limiter().s
	now := s.Now()
	a.mu.Lock()
	defer a.mu.Unlock()
	c := a.contact()
	sent := c.sent
	c.sent, c.inflight, c.intent = nil, false, intent{}
	switch {
	case st == nil:
	case st.Outcome == slice.Ran:
		a.ran(st, now)
	case st.Outcome == slice.NotRun:
		a.limiter().Counts.NotRun.Add(1)
		c.lease.NotRun(&a.Cell)
		c.counted += st.Usage.Spent
		c.untold(&st.Usage)
	default:
		a.limiter().Counts.Unknown.Add(1)
		a.limiter().Counts.Expired.Add(uint64(st.Usage.Returned)) // perhaps it took them, perhaps they lapse
		c.lease.Lost()
		c.unheard(st.Usage)
	}
	a.answer(sent, st, now)
	if a.Plan().Never {
		a.stop(now)
	}
	a.serveWaiting(now)
	a.schedule(now)
}

// ran takes over the store's reply. The caller holds mu.
func (a *Account) ran(st *slice.Settle, now int64) {
	c, g, plan := a.contact(), st.Grant, a.Plan()
	a.limiter().Counts.operation(&st.Usage, &g)
	c.way.hear(&g, c.sentAt, now)
	expiry := slice.Tick(0)
	if st.Usage.Held > 0 || g.Granted > 0 {
		expiry = a.expiry(&g)
		a.limiter().s.deadlines.add(expiry)
	}
	lost, spent := c.lease.Ran(&a.Cell, g, expiry)
	if g.Dropped {
		a.tally(spent, now)
		c.counted = 0
		a.limiter().Counts.Expired.Add(uint64(lost))
	}
	if c.bucketAt != 0 && c.fallback == 0 {
		c.bucketAt = 0 // the outage is over and paid for
	}
	if !c.outdated {
		a.tell(st, plan, now)
		a.judge(st, plan, now)
	}
	if c.lease.Holds() {
		c.idleTokens, c.idleSince = a.Cell.Tokens(), now
		a.Cell.SetLow(a.low(plan))
	}
}

// expiry returns the local tick at which a lease must end. It counts from
// before the call entered the client, when the store's now was still to come.
func (a *Account) expiry(g *slice.Grant) slice.Tick {
	life := time.Duration(g.Life) * time.Microsecond
	return slice.TickAt(a.contact().sentAt + int64(life-slice.Guard(life)))
}

// low returns the level at which the slice asks for more.
func (a *Account) low(plan *Plan) int64 {
	c := a.contact()
	return lowWater(&c.demand, plan.horizon, a.limiter().s.latency.Load(), int64(a.limiter().s.cfg.SyncInterval), a.Cell.Tokens())
}

// tell keeps what the store said for the results of later requests, and turns
// the floor off while the account is nearly full: there its tokens would only
// be taken from others.
func (a *Account) tell(st *slice.Settle, plan *Plan, now int64) {
	g := &st.Grant
	a.contact().lent = g.Lent
	free := max(float64(st.Rule.Burst)-g.Used, 0)
	a.told(free, slice.ResetAfter(st.Rule, *g), now)
	if free < float64(st.Rule.Burst)/4 && plan.Floor.Cap > 0 {
		a.startFloor(plan.Floor, now)
		a.floor.Suspend(now + plan.horizon)
	}
}

// judge draws the conclusions of a reply: whether the account is saturated, so
// that this node asks for it by the pace, and whether costs are denied from
// memory until it asks again.
func (a *Account) judge(st *slice.Settle, plan *Plan, now int64) {
	c, g := a.contact(), &st.Grant
	if st.Rule != plan.Rule {
		return // the limit has changed: what was judged by the old one is over
	}
	if cost := smallestRefused(st); cost > 0 {
		a.refuse(cost, st, plan, now)
		return
	}
	free := float64(st.Rule.Burst) - g.Used
	paced := c.saturated && st.Usage.Want > 0 // this was the question of the pace
	sharingEnds := tooLittle(st) && free < a.plenty(plan) && a.pacedGoal(plan) > 0
	gaveBack := st.Usage.Charged < 0 || st.Usage.Returned > 0
	switch {
	case c.saturated && free >= a.plenty(plan):
		c.saturated = false
		a.forget(now)
	case paced && g.Granted < st.Usage.Want:
		a.refuse(a.refusable(free), st, plan, now) // the next request would be
	case paced || sharingEnds:
		a.saturate(plan, now)
		a.forget(now)
	case gaveBack && free >= float64(a.memoCost()):
		a.forget(now) // it is there for this node as well
	}
}

// tooLittle reports whether a grant shows that sharing has come to its end: it
// brought nothing, or less than a tight account should lend.
func tooLittle(st *slice.Settle) bool {
	u, granted := &st.Usage, st.Grant.Granted
	return u.Want > 0 && (granted == 0 || u.Divisor == tight && granted < u.Want)
}

// plenty returns how many tokens must be free for nodes to go back from asking
// by the pace to sharing: far more than where sharing ends, or they would go
// back and forth.
func (a *Account) plenty(plan *Plan) float64 {
	return max(float64(plan.Rule.Burst)/4, 4*float64(a.contact().unit)*float64(a.sharers()))
}

// refusable returns the smallest cost that is known to be refused when so many
// tokens are free: that of the memo, or the unit, of which less is free.
func (a *Account) refusable(free float64) int64 {
	if cost := a.memoCost(); float64(cost) > free {
		return cost
	}
	return a.contact().unit
}

// memoCost returns the cost that the memo denies, or else the unit.
func (a *Account) memoCost() int64 {
	if m := a.contact().memo.Load(); m != nil {
		return m.Cost
	}
	return a.contact().unit
}

// forget drops the memo, keeping the demand that it counted.
func (a *Account) forget(now int64) {
	a.count(now)
	a.contact().memo.Store(nil)
}

// smallestRefused returns the smallest cost that was refused, 0 if none was.
func smallestRefused(st *slice.Settle) (cost int64) {
	for i, need := range st.Usage.Needs {
		if st.Grant.Admitted[i] < need.Count && (cost == 0 || need.Cost < cost) {
			cost = need.Cost
		}
	}
	return cost
}

// refuse remembers that the store refused a cost, until there is to be another
// answer. Callers were told to come back at the promise: unless that is over, this
// denial ends by then.
func (a *Account) refuse(cost int64, st *slice.Settle, plan *Plan, now int64) {
	c := a.contact()
	own := int64(slice.RetryAfter(st.Rule, st.Grant, cost))
	ends := a.nextAnswer(own, plan, now)
	over := a.promiseIsOver(saturatingAdd(now, own), st, plan, now)
	if !over {
		ends = min(ends, c.promise)
	}
	retry := max(ends, saturatingAdd(now, own))
	if over || retry < c.promise {
		c.promise = retry
	}
	free := float64(st.Rule.Burst) - st.Grant.Used
	if m := c.memo.Load(); m != nil && now < m.Until && float64(m.Cost) > free {
		cost = min(cost, m.Cost)
	}
	a.count(now)
	c.next = min(c.next, ends)
	c.memo.Store(&precheck.Memo{Cost: cost, Until: ends, Retry: retry})
	a.limiter().s.recall.notice(a, cost, st, a.pace(plan), now)
}

// promiseIsOver reports whether nobody is owed an answer by the promise any more: its
// time has passed, or this is the answer that was to be there by then. It is not if the
// answer only came early, of an account that nobody else uses: whoever waits until then
// finds the tokens there, which are free at freeAt.
func (a *Account) promiseIsOver(freeAt int64, st *slice.Settle, plan *Plan, now int64) bool {
	c := a.contact()
	early := st.Grant.Granted == 0 && st.Grant.Lent == 0 && freeAt <= c.promise+a.limiter().s.latency.Load()
	return c.promise <= now || c.promise <= now+a.margin(plan) && !early
}

// nextAnswer plans the next question to a store that refuses, and returns when
// its answer will be there. If more requests are expected the account is
// saturated: from now on this node asks once per period, in advance and for all
// its callers. Otherwise a request asks when the account itself can admit it, or
// after a period, whichever comes first.
func (a *Account) nextAnswer(own int64, plan *Plan, now int64) int64 {
	c := a.contact()
	if a.pacedGoal(plan) == 0 || !plan.Sliced || c.loner {
		c.saturated = false
		c.next = a.limiter().s.aligned(now, max(min(own, a.pace(plan)), 1))
		return c.next
	}
	a.saturate(plan, now)
	if plan.Rule.Window == 0 {
		return c.next + a.margin(plan)
	}
	end := saturatingAdd(now, max(own, 1)) // a new window is not saturated
	c.next = min(c.next, end)
	return min(c.next+a.margin(plan), end)
}

// margin is how long the answer to a question of the pace may take.
func (a *Account) margin(plan *Plan) int64 {
	return min(a.limiter().s.latency.Load()+int64(agendaPause), a.pace(plan)/4)
}

// askAfter plans the next paced settle. No denial lasts for more than 10 s, or a
// Reset would be seen too late.
func (a *Account) askAfter(wait int64, plan *Plan, now int64) {
	a.contact().next = a.limiter().s.aligned(now, min(wait, int64(longestPace)-a.margin(plan)))
}

// saturate makes the node ask for the account by the pace, and plans the next
// time if none is planned. All nodes find an account saturated at about the same
// time: the first wait spreads them over the period.
func (a *Account) saturate(plan *Plan, now int64) {
	c, wait := a.contact(), a.pace(plan)
	switch {
	case !c.saturated:
		wait = int64(a.limiter().s.dice.float() * float64(wait))
	case c.next > now:
		return
	default:
		wait = a.limiter().s.dice.jitter(wait)
	}
	c.saturated = true
	a.askAfter(wait, plan, now)
}

func saturatingAdd(a, b int64) int64 {
	if b >= math.MaxInt64-a {
		return math.MaxInt64 - 1 // a memo's MaxInt64 means never
	}
	return a + b
}

// answer gives the callers of a settle their verdicts, in their order.
func (a *Account) answer(sent []*waiter, st *slice.Settle, now int64) {
	if st == nil || st.Outcome != slice.Ran {
		for _, w := range sent {
			if w.cost == 0 { // with nothing left to say, all is settled
				w.done <- Verdict{Allowed: st == nil && !a.contact().lease.InDoubt(), Source: FromPolicy}
			} else if !w.left {
				w.done <- a.fall(w.cost, now)
			}
		}
		return
	}
	run, used := 0, int64(0)
	for _, w := range sent {
		if w.cost == 0 {
			w.done <- Verdict{Allowed: true}
			continue
		}
		for st.Usage.Needs[run].Cost != w.cost || used == st.Usage.Needs[run].Count {
			run, used = run+1, 0
		}
		v := Verdict{Allowed: used < st.Grant.Admitted[run], Source: FromStore}
		used++
		if !v.Allowed {
			a.contact().deny(1, now)
			v.Retry = a.retry(w.cost, st, now)
		}
		a.limiter().Counts.exact(v.Allowed)
		w.done <- v
	}
}

// retry returns what a refused caller is told: the memo's time if the memo
// answers for its cost, and never less than the account's own.
func (a *Account) retry(cost int64, st *slice.Settle, now int64) time.Duration {
	own := slice.RetryAfter(st.Rule, st.Grant, cost)
	if m := a.contact().memo.Load(); m != nil && m.Cost <= cost {
		return max(own, m.RetryAfter(now))
	}
	return own
}

// serveWaiting answers callers that came during the settle from what it
// brought; those that still need the store go with the next one.
func (a *Account) serveWaiting(now int64) {
	c := a.contact()
	rest := c.waiting[:0]
	for _, w := range c.waiting {
		if w.left {
			continue
		}
		if w.cost > 0 {
			if v, ok := a.local(w.cost, now); ok {
				w.done <- v
				continue
			}
			if a.down() {
				c.earn(1)
				w.done <- a.fall(w.cost, now)
				continue
			}
		}
		rest = append(rest, w)
	}
	clear(c.waiting[len(rest):])
	c.waiting = rest
	if len(rest) > 0 {
		a.start(intent{})
	}
}
