package syncer

import (
	"context"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/hybridlimit/hybrid/slice"
)

// recall brings tokens back that sit in the slices of other nodes while a
// request is refused for want of them. The refused node marks the account in
// the store; nodes that hold slices read the marks with their sync and give
// back what they do not use.
type recall struct {
	s *Syncer

	mu    sync.Mutex
	marks []slice.Mark // to be published with the next tick

	// Owned by the poll.
	since   int64 // µs of the store, newest mark read
	crowded bool  // the last poll read as many as it may
}

// overlap is how far back a poll reads once more, in µs. Marks carry the time at which
// their publication began, by the clock that the publisher heard last: they are there
// some round trips later. A mark that comes later still is lost, and made again a period
// later; each tick of overlap is as much to read again, by every node, for nothing. Where
// the store has parts, their clocks differ as well, and a node may have heard another
// one's last. An account remembers the newest mark that it has obeyed.
func (r *recall) overlap() int64 {
	overlap := 100*time.Millisecond + 4*r.s.cfg.StoreTimeout
	if len(r.s.lanes) > 1 {
		overlap += time.Second
	}
	return int64(overlap / time.Microsecond)
}

const (
	mostMarks     = 128 // published per tick
	mostMarksRead = 256 // read per poll
)

// notice marks the account if it is scarce: a cost was refused although the
// tokens exist, and more is out on lease than pacing alone accounts for. The
// caller holds the account's mu.
func (r *recall) notice(a *Account, cost int64, st *slice.Settle, period, now int64) {
	g, plan, c := &st.Grant, a.Plan(), a.contact()
	usual := plan.ratePerNano() * float64(period)
	if st.Rule.Window > 0 {
		usual = 0
	}
	usual = min(usual, float64(st.Rule.Burst-cost)) // if more is lent, no refill makes room
	free := float64(st.Rule.Burst) - g.Used
	if free+float64(g.Lent) < float64(cost) || float64(g.Lent) <= usual {
		return
	}
	if c.markedAt != 0 && now-c.markedAt < max(int64(r.s.cfg.SyncInterval), period) {
		return
	}
	c.markedAt = now
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.marks) < mostMarks {
		r.marks = append(r.marks, slice.Mark{Account: scarceID(a.limiter().name, a.key), Cost: cost})
	}
}

// sync publishes this node's marks and, if it holds slices, obeys the others'.
// It blocks on the store and is called from one goroutine at a time.
func (r *recall) sync(ctx context.Context, holding bool) {
	r.mu.Lock()
	marks := r.marks
	r.marks = nil
	r.mu.Unlock()
	clock := r.s.Now()/1000 + r.s.clock.Load()
	for i := range marks {
		marks[i].At = clock
	}
	if len(marks) > 0 {
		if err := r.s.store.Mark(ctx, marks); err != nil {
			r.s.Counts.MarkErrors.Add(1)
		}
	}
	if !holding {
		return
	}
	since := min(r.since, clock) - r.overlap()
	if r.crowded {
		since = r.since // there is more than one poll reads
	}
	read, err := r.s.store.Marks(ctx, since, mostMarksRead)
	if err != nil {
		r.s.Counts.MarkErrors.Add(1)
		return
	}
	r.since, r.crowded = clock, len(read) == mostMarksRead
	for _, m := range read {
		r.since = m.At // they come in the order of time
		if a := r.s.byScarceID(m.Account); a != nil {
			a.yield(m)
		}
	}
	r.s.nudge()
}

// yield gives back what this node does not need; or everything, if that is less
// than the cost which was refused and this node hands out smaller ones. In a
// window the cost does not matter: what is kept too long is lost.
func (a *Account) yield(m slice.Mark) {
	now := a.limiter().s.Now()
	a.mu.Lock()
	defer a.mu.Unlock()
	c := a.contact()
	if a.dead || c == nil || c.inflight || !c.lease.Holds() || m.At <= c.yieldedAt {
		return
	}
	c.yieldedAt = m.At
	a.count(now)
	tokens, keep := a.Cell.Tokens(), a.needed(now)
	if tokens-keep < m.Cost && (m.Cost > c.unit || a.Plan().Rule.Window > 0) {
		keep = 0
	}
	if tokens > keep && a.attempt(intent{kind: giveBack, keep: keep}, now) {
		a.limiter().Counts.Recalled.Add(uint64(tokens - keep))
	}
}

// needed returns what a holder may keep of a scarce account: what it would be lent
// if the account were saturated, while it has use for it. What is left of a window
// at its end is lost: there, it is what the next sync interval needs. The caller
// holds mu, and has counted.
func (a *Account) needed(now int64) int64 {
	c, plan := a.contact(), a.Plan()
	switch {
	case plan.Rule.Window > 0:
		return int64(c.demand.over(int64(a.limiter().s.cfg.SyncInterval), plan.horizon))
	case c.attempts == 0 && now-c.sentAt > a.pace(plan):
		return 0
	}
	return a.pacedGoal(plan)
}

// scarceID names an account among all limiters of the service; the length makes
// it unambiguous. byScarceID is its inverse on this node.
func scarceID(limiter, key string) string {
	return strconv.Itoa(len(limiter)) + ":" + limiter + ":" + key
}

func (s *Syncer) byScarceID(id string) *Account {
	length, rest, ok := strings.Cut(id, ":")
	n, err := strconv.Atoi(length)
	if !ok || err != nil || n < 0 || n >= len(rest) || rest[n] != ':' {
		return nil
	}
	lim := s.limiter(rest[:n])
	if lim == nil {
		return nil
	}
	a, _ := lim.table.Load(rest[n+1:])
	return a
}
