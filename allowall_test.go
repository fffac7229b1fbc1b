package hybrid

import (
	"context"
	"flag"
	"fmt"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// This file searches for a call of AllowAll that charges a limit without being
// admitted: in random stories of several nodes, limits and faults, whose books are
// closed when all leases are over. What exactly holds then of each limit that
// does not refill meanwhile:
//
//   - What Redis says is used is what the admitted calls took, to the token: also
//     after settles that Redis refused, and before the nodes leave, if what they hold
//     in slices is counted.
//   - Tokens that a settle without a reply spoke of may be used for nobody, until
//     they refill: what it returned, held, asked for, needed, or should have given back.
//     Never the other way round.
//   - Tokens that a call was waiting for when its context ended may be used for nobody.
//   - What a node admits without Redis, from its floor or by its failure policy, may
//     never reach Redis. Nothing else is missing there.
//
// And of each limit, whether it refills or not: the admitted calls keep its bound.

// pact is a story of calls that need several limits.
type pact struct {
	nodes  int
	terms  []term // the limits, all of which each call needs
	policy FailurePolicy
	calm   time.Duration // before the first call; floors are earned
	calls  []jointCall
}

type term struct {
	limit Limit
	acc   Accuracy
}

// still reports whether the limit gives nothing back in a story: what is used of it
// is what was used.
func (m term) still() bool { return fillTime(m.limit) >= time.Hour }

// jointCall is one call of AllowAll.
type jointCall struct {
	node     int
	gap      time.Duration // since the call before it; 0: both at once
	first    int           // the limit that is asked first; the others follow in turn
	costs    []int64       // by limit
	patience time.Duration // of its context; 0: it stays
	fault    fault         // of the next settle of its node
}

const mostCost = 4

func drawPact(t *rapid.T) pact {
	p := pact{
		nodes:  rapid.IntRange(1, 3).Draw(t, "nodes"),
		policy: rapid.SampledFrom([]FailurePolicy{FailClosed, FailClosed, FailLocal, FailOpen}).Draw(t, "policy"),
		calm:   rapid.SampledFrom([]time.Duration{0, 0, 70 * time.Second}).Draw(t, "calm"),
		terms:  []term{drawTerm(t, 20, 60), drawTerm(t, 1, 20)},
	}
	if rapid.Bool().Draw(t, "three limits") {
		p.terms = append(p.terms, drawTerm(t, 1, 60))
	}
	faults := rapid.SampledFrom([][]fault{{none}, {none, none, none, refused},
		{none, none, none, none, none, refused, cutBefore, cutAfter, swallowed}}).Draw(t, "faults")
	patience := rapid.SampledFrom([][]time.Duration{{0}, {0}, {0, 0, 0, 400 * time.Microsecond, time.Millisecond}}).Draw(t, "patience")
	p.calls = rapid.SliceOfN(rapid.Custom(func(t *rapid.T) jointCall {
		return jointCall{
			node:     rapid.IntRange(0, p.nodes-1).Draw(t, "node"),
			gap:      time.Duration(rapid.SampledFrom([]int{0, 0, 1, 20, 300}).Draw(t, "gap ms")) * time.Millisecond,
			first:    rapid.IntRange(0, len(p.terms)-1).Draw(t, "first"),
			costs:    rapid.SliceOfN(rapid.Int64Range(1, mostCost), len(p.terms), len(p.terms)).Draw(t, "costs"),
			patience: rapid.SampledFrom(patience).Draw(t, "patience"),
			fault:    rapid.SampledFrom(faults).Draw(t, "fault"),
		}
	}), 10, 60).Draw(t, "calls")
	return p
}

// drawTerm draws a limit of at least and at most so many tokens, most of them still.
func drawTerm(t *rapid.T, least, most int64) term {
	n := rapid.Int64Range(least, most).Draw(t, "tokens")
	return term{
		limit: rapid.SampledFrom([]Limit{
			slow(n), Window(n, time.Hour), Window(1000*n, time.Hour), // the last has floors, once they are earned
			Per(n, 3*time.Second), Window(n, time.Second),
		}).Draw(t, "limit"),
		acc: rapid.SampledFrom([]Accuracy{Balanced, Strict, Exact}).Draw(t, "accuracy"),
	}
}

// allower decides a call: AllowAll, or a flawed one.
type allower func(ctx context.Context, n *Node, checks []Check) (Result, error)

func allOrNothing(ctx context.Context, n *Node, checks []Check) (Result, error) {
	return n.AllowAll(ctx, checks...)
}

// oneByOne asks one limit after the other, and undoes what it took if one denies.
func oneByOne(undo func(Check)) allower {
	return func(ctx context.Context, _ *Node, checks []Check) (r Result, err error) {
		for i, c := range checks {
			if r, err = c.Limiter.AllowN(ctx, c.Key, c.N); err == nil && r.Allowed {
				continue
			}
			for _, taken := range checks[:i] {
				undo(taken)
			}
			break
		}
		return r, err
	}
}

// searches sets how many stories rapid draws, unless the command line says so.
func searches(t *testing.T, n int) {
	checks := flag.Lookup("rapid.checks")
	if was := checks.Value.String(); was == checks.DefValue {
		t.Cleanup(func() { _ = flag.Set("rapid.checks", was) })
		if err := flag.Set("rapid.checks", fmt.Sprint(n)); err != nil {
			t.Fatal(err)
		}
	}
}

// However limits, nodes, callers and faults come together: a limit that admitted
// a call which another one denied is as it would be without that call.
func TestADenialByOneLimitChargesNoOther(t *testing.T) {
	n := 30
	if raceDetector {
		n = 6
	}
	searches(t, n)
	rapid.Check(t, func(rt *rapid.T) {
		for _, problem := range drawPact(rt).play(t, allOrNothing) {
			rt.Error(problem)
		}
	})
}

// The search must see what it is for.
func TestChargesOfDeniedCallsAreFound(t *testing.T) {
	longUnderRace(t)
	refund := func(c Check, n int64) { _ = c.Limiter.Refund(c.Key, n) }
	for _, flaw := range []struct {
		name    string
		undo    func(Check)
		stories int // at most
		found   bool
	}{
		{"nothing is put back", func(Check) {}, 30, true},
		{"a token too few is put back", func(c Check) { refund(c, c.N-1) }, 30, true},
		{"a token too many is put back", func(c Check) { refund(c, c.N+1) }, 30, true},
		{"all is put back twice", func(c Check) { refund(c, c.N); refund(c, c.N) }, 30, true},
		{"all is put back", func(c Check) { refund(c, c.N) }, 5, false},
	} {
		stories, problems := 0, []string(nil)
		for ; stories < flaw.stories && len(problems) == 0; stories++ {
			problems = rapid.Custom(drawPact).Example(stories).play(t, oneByOne(flaw.undo))
		}
		t.Logf("%s: %d stories, %.200q", flaw.name, stories, problems)
		if found := len(problems) > 0; found != flaw.found {
			t.Errorf("%s: found %v in %d stories: %q", flaw.name, found, stories, problems)
		}
	}
}
