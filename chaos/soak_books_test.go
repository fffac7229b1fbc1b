package chaos

import (
	"cmp"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/hybridlimit/hybrid"
	"github.com/hybridlimit/hybrid/internal/oracle"
)

// soakBooks replay what keys were admitted in a whole soak, in constant memory.
// Keys that are asked for once are judged by the round alone.
type soakBooks map[soakAccount]*soakBook

type soakAccount struct {
	accuracy hybrid.Accuracy
	account
}

// soakBook is one account's.
type soakBook struct {
	covered, all *oracle.Checker // without what the policy admitted, and with it
	wait         time.Duration   // the longest call that was admitted
}

// leaseLife is how long a loss of data may be felt: until the leases of which the
// server knows nothing have ended, two epochs later.
const leaseLife = 2 * time.Minute

// forgive opens new books when the server loses data, or when a loss is felt no
// more: each loss that is felt is worth one burst.
func (s *soak) forgive(now time.Time, lost int) {
	before := len(s.losses)
	s.losses = slices.DeleteFunc(s.losses, func(at time.Time) bool { return now.Sub(at) > leaseLife })
	for range lost {
		s.losses = append(s.losses, now)
	}
	if lost > 0 || len(s.losses) != before {
		clear(s.books)
	}
}

// enter adds a group's part of a round, which began so long after the soak, and
// returns the bounds that are broken. An admission counts between its call and its
// answer, and is entered when it was answered: so much more than the bound may come
// together.
func (b soakBooks) enter(o *outcome, began time.Duration) (bad []string) {
	answers := slices.Clone(o.answers)
	slices.SortStableFunc(answers, func(x, y answer) int { return cmp.Compare(x.end(), y.end()) })
	for i := range answers {
		if a := &answers[i]; a.allowed && a.kind != fresh {
			b.book(o, a).add(a, int64(began+a.end()))
		}
	}
	rate := float64(o.limit.Count()) / float64(o.limit.Period())
	for acc, book := range b {
		if acc.accuracy != o.accuracy {
			continue
		}
		over := o.accuracy.Over()
		judge := func(c *oracle.Checker, over float64, what string) {
			if r := c.Report(); r.Excess > rate*(1+over)*float64(book.wait) {
				bad = append(bad, fmt.Sprintf("the bound of the whole run, %v, %v, %s, %s: %v; the longest call was %v", acc.accuracy, acc.policy, acc.key, what, r, book.wait))
			}
		}
		judge(book.covered, over, "without what the policy admitted")
		if acc.policy == hybrid.FailLocal {
			judge(book.all, over+1, "with what the policy admitted")
		}
	}
	return bad
}

// book is that of an answer.
func (b soakBooks) book(o *outcome, a *answer) *soakBook {
	acc := soakAccount{o.accuracy, account{a.policy, a.key}}
	if b[acc] == nil {
		over := o.accuracy.Over()
		b[acc] = &soakBook{covered: oracle.NewChecker(o.promised(over, o.expect.losses, 0)), all: oracle.NewChecker(o.promised(over+1, o.expect.losses, 0))}
	}
	return b[acc]
}

func (b *soakBook) add(a *answer, at int64) {
	b.wait = max(b.wait, a.took)
	admission := oracle.Admission{At: at, Cost: 1}
	b.all.Add(admission)
	if a.path != hybrid.PathFallback {
		b.covered.Add(admission)
	}
}

// Two rounds that keep to the limit may break it together, and what was lost, or
// what the policy admitted, is forgiven where it should be.
func TestTheBooksOfASoakAreKept(t *testing.T) {
	round := func(p hybrid.FailurePolicy, path hybrid.Path, at time.Duration, n int) *outcome {
		o := &outcome{limit: hybrid.PerSecond(100), accuracy: hybrid.Strict}
		for range n {
			o.answers = append(o.answers, answer{at: at, took: time.Millisecond, policy: p, kind: hot, key: "hot", allowed: true, path: path})
		}
		return o
	}
	const later = 500 * time.Millisecond
	for name, c := range map[string]struct {
		policy         hybrid.FailurePolicy
		path           hybrid.Path
		first, second  int
		losses, broken int
	}{
		"as much as there is":             {hybrid.FailClosed, hybrid.PathExact, 100, 50, 0, 0},
		"more":                            {hybrid.FailClosed, hybrid.PathExact, 100, 52, 0, 1},
		"more after a loss":               {hybrid.FailClosed, hybrid.PathExact, 100, 150, 1, 0},
		"more than after a loss":          {hybrid.FailClosed, hybrid.PathExact, 100, 152, 1, 1},
		"by the policy, as it may":        {hybrid.FailLocal, hybrid.PathFallback, 200, 100, 0, 0},
		"by the policy, more":             {hybrid.FailLocal, hybrid.PathFallback, 200, 102, 0, 1},
		"FailOpen, which promises no end": {hybrid.FailOpen, hybrid.PathFallback, 200, 1000, 0, 0},
	} {
		books := soakBooks{}
		first, second := round(c.policy, c.path, 0, c.first), round(c.policy, c.path, 0, c.second)
		first.expect.losses, second.expect.losses = c.losses, c.losses
		bad := books.enter(first, 0)
		if len(bad) > 0 {
			t.Errorf("%s: the first round alone: %q", name, bad)
		}
		if bad = books.enter(second, later); len(bad) != c.broken {
			t.Errorf("%s: %q, want %d", name, bad, c.broken)
		}
	}
}

// A loss is felt for two epochs, and books are opened anew when it comes and goes.
func TestLossesAreForgivenForAWhile(t *testing.T) {
	s, now := &soak{books: soakBooks{}}, time.Now()
	open := func() { s.books[soakAccount{}] = &soakBook{} }
	for i, c := range []struct {
		after        time.Duration
		lost, losses int
		kept         bool
	}{
		{0, 0, 0, true},
		{time.Second, 1, 1, false},
		{time.Minute, 0, 1, true},
		{time.Minute + time.Second, 1, 2, false},
		{leaseLife + 2*time.Second, 0, 1, false},
		{2*leaseLife + time.Minute, 0, 0, false},
	} {
		open()
		s.forgive(now.Add(c.after), c.lost)
		if len(s.losses) != c.losses || len(s.books) == 1 != c.kept {
			t.Errorf("step %d: %d losses, books %v", i, len(s.losses), s.books)
		}
	}
}

// On a busy machine a call may be twice as late as timers are, and no later.
func TestTheLongestCallIsHeldToTimers(t *testing.T) {
	for took, broken := range map[time.Duration]int{64 * ms: 0, 66 * ms: 1} {
		o := sound()
		o.controls[7].by = 20 * ms
		o.answers[5].took = took
		if bad := latestCall(o); len(bad) != broken {
			t.Errorf("%v: %q", took, bad)
		}
	}
}

// A soak in which hardly a round could be judged proves nothing, however long it was.
func TestSoakOnABusyMachineIsTold(t *testing.T) {
	for _, c := range []struct {
		wholly, rounds int
		enough         bool
	}{{5, 30, false}, {9, 30, false}, {10, 30, true}, {1, 2, true}, {0, 0, false}} {
		if enough := enoughJudged(c.wholly, c.rounds); enough != c.enough {
			t.Errorf("%d of %d: %v", c.wholly, c.rounds, enough)
		}
	}
}
