package chaos

import (
	"fmt"
	"time"

	"github.com/hybridlimit/hybrid"
)

// The keys of the load, see load.stream.
const hotKey = secretMark + "-hot"

func warmKey(n int) string { return fmt.Sprintf("%s-warm-%d", secretMark, n) }

// share is how the requests for some keys were answered in some time.
type share struct {
	asked    int
	needed   int // those that neither a slice nor a memory answered
	byPolicy int
	excused  int           // of those: the machine stood still
	first    time.Duration // answer by policy, since the fault
	last     time.Duration
}

func (s share) String() string {
	if s.byPolicy == 0 {
		return fmt.Sprintf("of %d requests %d needed the store, none was answered by policy", s.asked, s.needed)
	}
	return fmt.Sprintf("of %d requests %d needed the store, %d were answered by policy (%.1f %% of all, %.1f %% of those), from %v to %v after the fault; %d of them because the machine stood still",
		s.asked, s.needed, s.byPolicy, percent(s.byPolicy, s.asked), percent(s.byPolicy, s.needed),
		s.first.Round(time.Millisecond), s.last.Round(time.Millisecond), s.excused)
}

func percent(part, whole int) float64 { return 100 * float64(part) / float64(max(whole, 1)) }

// shareOf sums up the answers between two times.
func (o *outcome) shareOf(from, to time.Duration, counts func(*answer) bool) (s share) {
	for i := range o.answers {
		a := &o.answers[i]
		if a.at < from || a.at >= to || !counts(a) {
			continue
		}
		s.asked++
		switch a.path {
		case hybrid.PathExact:
			s.needed++
		case hybrid.PathFallback:
			s.needed++
			s.fell(a.at-o.began, o.excused(a))
		}
	}
	return s
}

// fell counts an answer by policy.
func (s *share) fell(at time.Duration, excused bool) {
	if s.byPolicy++; s.byPolicy == 1 {
		s.first = at
	}
	s.last = at
	if excused {
		s.excused++
	}
}

// blamed is the percentage of those that needed the store, and fell to the policy
// while the machine ran.
func (s share) blamed() float64 { return percent(s.byPolicy-s.excused, s.needed-s.excused) }

// leastJudged is how many requests must have needed the store while the machine ran,
// or a share of them proves nothing.
const leastJudged = 100

// proves reports whether so many were left.
func (s share) proves(least int) bool { return s.needed-s.excused >= least }

// judgeShare fails the test if more of these than expected fell to the policy. If too
// few were left to tell, the run is to be played again.
func (r *topologyRun) judgeShare(what string, s share, least int, most float64) {
	r.t.Helper()
	r.t.Logf("%s: %v", what, s)
	switch {
	case !s.proves(least):
		r.unproved = append(r.unproved, fmt.Sprintf("%s: only %d requests needed the store while the machine ran, at least %d expected", what, s.needed-s.excused, least))
	case s.blamed() > most:
		r.t.Errorf("%s: %.1f %% of the requests that needed the store fell to the policy, at most %.1f %% expected", what, s.blamed(), most)
	}
}

// place is where a key is, seen from the shard that fails.
type place uint8

const (
	unplaced   place = iota // a fresh key
	failing                 // on that shard
	neighbours              // on another one, and on its lane: nodes divide a cluster into lanes, equal parts of its slots
	apart                   // on another one
)

// judgeShards tells what keys of the shard that failed and of the others saw, and
// fails the test if keys apart from it fell to the policy.
func (r *topologyRun) judgeShards(placeOf map[account]place) {
	r.t.Helper()
	r.t.Logf("the fault lasted %v", (r.out.ended - r.out.began).Round(time.Millisecond))
	at := func(p place) share {
		return r.out.shareOf(r.out.began, r.out.stopped, func(a *answer) bool { return placeOf[account{a.policy, a.key}] == p })
	}
	down, apart := at(failing), at(apart)
	r.t.Logf("keys of the shard that failed: %v", down)
	if near := at(neighbours); near.asked > 0 {
		r.t.Logf("keys of others that share a lane with it: %v", near)
	}
	if down.byPolicy == 0 {
		r.t.Error("no key of the shard that failed was answered by policy: nothing is proved")
	}
	r.judgeShare("keys of the others", apart, 2*leastJudged, r.out.mostByAccident(r.out.began, r.out.stopped))
}

// mostByAccident is the percentage of requests that may miss StoreTimeout because
// so many processes share the processors, though timers were punctual at the time:
// two, and as many as there were timers late by a quarter of it, but a tenth at most.
func (o *outcome) mostByAccident(from, to time.Duration) float64 {
	timers, unpunctual := 0, 0
	for _, c := range o.controls {
		if c.at >= from && c.at < to {
			timers++
			if c.by > o.timeout/4 {
				unpunctual++
			}
		}
	}
	return min(2+percent(unpunctual, timers), 10)
}
