package hybrid

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/hybridlimit/hybrid/internal/oracle"
	"github.com/hybridlimit/hybrid/slice"
)

// This file plays the stories of cases_allowall_test.go, and closes their books.

// scene is a pact as it is played.
type scene struct {
	*fleet
	pact
	limiters [][]*Limiter // by node and limit

	took     []int64              // by limit: tokens of the admitted calls
	strayed  []int64              // by limit: tokens of the calls that failed
	admitted [][]oracle.Admission // by limit
	lost     map[string]float64   // by account: tokens that settles without a reply spoke of
	longest  time.Duration        // of the calls
	problems []string
}

// play returns what is wrong with a pact's books.
func (p pact) play(t *testing.T, allow allower) (problems []string) {
	inBubble(t, fleetSetup{nodes: 1, limit: PerSecond(1)}, func(f *fleet) {
		f.leaveAll() // it has no part in this
		s := &scene{fleet: f, pact: p, lost: map[string]float64{},
			took: make([]int64, len(p.terms)), strayed: make([]int64, len(p.terms)), admitted: make([][]oracle.Admission, len(p.terms))}
		for range p.nodes {
			s.join()
		}
		s.perform(allow)
		problems = s.problems
	})
	return problems
}

func (s *scene) problem(format string, args ...any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.problems = append(s.problems, fmt.Sprintf(format, args...))
}

// losses notes what settles without a reply spoke of.
type losses struct {
	*tracedStore
	scene *scene
}

func (l *losses) Settle(ctx context.Context, batch []*slice.Settle) {
	l.tracedStore.Settle(ctx, batch)
	l.f.mu.Lock()
	defer l.f.mu.Unlock()
	for _, st := range batch {
		if st.Outcome == slice.Unknown {
			// A refund may be lost; a charge, and what the policy admitted, be told twice.
			l.scene.lost[st.Account] += float64(spokenOf(st)) + max(st.Usage.Charged, -st.Usage.Charged) + st.Usage.Fallback
		}
	}
}

func (s *scene) lostOf(limit int) float64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.lost[s.accountOf(limit)]
}

func (s *scene) anyLost() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.lost) > 0
}

// join adds a node and its limiters.
func (s *scene) join() {
	way := s.link(s.rtt)
	opts, err := (&Options{Logger: quiet(), Servers: s.pact.nodes}).withDefaults()
	if err != nil {
		s.t.Fatal(err)
	}
	n := newNode(&losses{&tracedStore{Store: s.storeOf(way.Client(s.t)), f: s.fleet, node: len(s.fleet.nodes)}, s}, opts)
	var limiters []*Limiter
	for i, m := range s.terms {
		l, err := n.Limiter(nameOf(i), m.limit, &LimiterOptions{Accuracy: m.acc, OnFailure: s.policy})
		if err != nil {
			s.t.Fatal(err)
		}
		limiters = append(limiters, l)
	}
	s.limiters = append(s.limiters, limiters)
	s.fleet.nodes = append(s.fleet.nodes, n)
	s.links, s.gone = append(s.links, way), append(s.gone, false)
}

func nameOf(limit int) string { return fmt.Sprint("limit ", limit) }

// accountOf returns the name in the store of a limit's account.
func (s *scene) accountOf(limit int) string { return s.truth.Account(nameOf(limit), "k") }

// perform makes all calls, and closes the books while the nodes are there and once
// more when they have left and all leases are over.
func (s *scene) perform(allow allower) {
	time.Sleep(s.calm)
	var pending sync.WaitGroup
	for _, c := range s.calls {
		time.Sleep(c.gap)
		if way := s.links[1+c.node]; c.fault != none {
			way.Inject(c.fault)
		}
		pending.Go(func() { s.call(c, allow) })
	}
	pending.Wait()
	for _, way := range s.links {
		way.Mend()
	}
	time.Sleep(5 * time.Second) // settles without a reply are given up, breakers close
	for _, n := range s.fleet.nodes[1:] {
		if err := n.Flush(context.Background()); err != nil && !s.anyLost() { // a slice of unknown standing is not spoken of
			s.problem("Flush: %v", err)
		}
	}
	s.checkBooks(true)
	s.leaveAll()
	time.Sleep(2*time.Minute + time.Second)
	s.checkBooks(false)
	for i, m := range s.terms {
		s.checkTerm(i, m)
	}
}

func (s *scene) call(c jointCall, allow allower) {
	ctx, cancel := context.WithCancel(context.Background())
	if c.patience > 0 {
		ctx, cancel = context.WithTimeout(ctx, c.patience)
	}
	defer cancel()
	var checks []Check
	for j := range s.terms {
		i := (c.first + j) % len(s.terms)
		checks = append(checks, Check{Limiter: s.limiters[c.node][i], Key: "k", N: c.costs[i]})
	}
	start := time.Now()
	r, err := allow(ctx, s.fleet.nodes[1+c.node], checks)
	end := time.Now()
	switch {
	case err != nil && (c.patience == 0 || !errors.Is(err, context.DeadlineExceeded)):
		s.problem("an error: %v", err)
	case err == nil && !r.Allowed && r.RetryAfter <= 0:
		s.problem("denied without a time to retry: %+v", r)
	case err == nil && !s.isTerm(r.Limit):
		s.problem("the result is of no limit: %+v", r)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.longest = max(s.longest, end.Sub(start))
	for i, cost := range c.costs {
		switch {
		case err != nil:
			s.strayed[i] += cost
		case r.Allowed:
			s.took[i] += cost
			if p := s.terms[i].limit; !p.Windowed() || start.Truncate(p.Period()).Equal(end.Truncate(p.Period())) {
				s.admitted[i] = append(s.admitted[i], oracle.Admission{At: end.UnixNano(), Cost: cost})
			}
		}
	}
}

// isTerm reports whether one of the limits allows so much.
func (s *scene) isTerm(limit int64) bool {
	for _, m := range s.terms {
		if m.limit.Burst() == limit {
			return true
		}
	}
	return false
}

// checkBooks compares what Redis says of the limits that do not refill with what the
// admitted calls took. While nodes hold slices, these count as free.
func (s *scene) checkBooks(held bool) {
	for i, m := range s.terms {
		if !m.still() {
			continue
		}
		g, lost := s.stateOf(i), s.lostOf(i)
		if held && lost > 0 {
			continue // a slice of unknown standing may be no part of what is used
		}
		used := g.Used
		for _, limiters := range s.limiters {
			if a, ok := limiters[i].core.Load("k"); held && ok {
				used -= float64(a.Cell.Tokens())
			}
		}
		took, local := float64(s.took[i]), s.local(i)
		const rounding = 0.01 // and what the slowest limits refill
		if used < took-local-rounding || used > took+float64(s.strayed[i])+lost+rounding {
			s.problem("limit %d, %v %v: %v used for %v admitted; %v locally, %v in calls that failed, %v in settles without a reply; nodes there: %v",
				i, m.limit, m.acc, used, took, local, s.strayed[i], lost, held)
		}
		if !held && g.Lent != 0 {
			s.problem("limit %d: %d lent when all leases are over", i, g.Lent)
		}
	}
}

// stateOf is how an account stands in the store.
func (s *scene) stateOf(limit int) slice.Grant {
	st := &slice.Settle{Account: s.accountOf(limit), Rule: s.terms[limit].limit.Rule()}
	s.truth.Settle(context.Background(), []*slice.Settle{st})
	if st.Outcome != slice.Ran {
		s.t.Fatal(st.Err)
	}
	return st.Grant
}

// local is at least what the nodes admitted of a limit without asking Redis.
func (s *scene) local(limit int) float64 {
	floor, policy := s.unasked(limit)
	return mostCost * float64(floor+policy)
}

// unasked counts admissions by floors and by the failure policy, those that were
// put back among them.
func (s *scene) unasked(limit int) (floor, policy uint64) {
	for _, limiters := range s.limiters {
		c := &limiters[limit].core.Counts
		floor, policy = floor+c.Floor.Load(), policy+c.PolicyAllowed.Load()
	}
	return floor, policy
}

// checkTerm holds the admitted calls against one limit. They are stamped when they
// return; each limit was taken from up to the longest call earlier, and such an
// interval allows that much more. In a window, calls over its edge are left out.
func (s *scene) checkTerm(limit int, m term) {
	over := m.acc.Over()
	if _, policy := s.unasked(limit); policy > 0 {
		if s.policy == FailOpen {
			return // it has no bound
		}
		shares := 1.0 // of all nodes together
		if s.calm == 0 {
			// Before they know each other, each may give a token of a limit that has fewer.
			shares = max(shares, float64(s.pact.nodes)/float64(m.limit.Burst()))
		}
		over += shares
	}
	if !m.limit.Windowed() {
		over += (1 + over) * float64(s.longest) / float64(fillTime(m.limit))
	}
	if err := oracleOf(m.limit).Over(over).Check(s.admitted[limit]).Err(); err != nil {
		s.problem("limit %d, %v %v over %v: %v", limit, m.limit, m.acc, over, err)
	}
}
