package chaos

import (
	"fmt"
	"math"
	"time"

	"github.com/hybridlimit/hybrid"
	"github.com/hybridlimit/hybrid/internal/oracle"
)

// account is one key of one limiter.
type account struct {
	policy hybrid.FailurePolicy
	key    string
}

// promised is (1+over) times the limit, and so many bursts more. An admission by
// the store counts when the store makes it, which is during the call; it is
// replayed at the call's end, so waits may bring together what was wait apart.
func (o *outcome) promised(over float64, bursts int, wait time.Duration) oracle.Limit {
	burst, rate := float64(o.limit.Burst()), float64(o.limit.Count())/float64(o.limit.Period())
	burst = burst*(1+over) + burst*float64(bursts) + rate*(1+over)*float64(wait)
	return oracle.New(int64(float64(o.limit.Count())*(1+over)), o.limit.Period(), int64(math.Ceil(burst)))
}

// brokenBounds replays the admissions of each key. What is not by policy must
// keep to the limit, and one burst more for each loss of data. With FailLocal
// all of it must keep to twice the limit; with FailOpen there is no bound while
// the store is away.
func brokenBounds(o *outcome) (bad []string) {
	over := o.accuracy.Over()
	covered, all := o.admissions()
	byStore, byAny := o.longestAdmitted(func(a *answer) bool { return a.path != hybrid.PathFallback }), o.longestAdmitted(func(*answer) bool { return true })
	judge := func(what string, lists map[account][]oracle.Admission, limit oracle.Limit) {
		for acc, list := range lists {
			if err := limit.Check(list).Err(); err != nil {
				bad = append(bad, fmt.Sprintf("%s, %v, %s: %v", acc.key, acc.policy, what, err))
			}
		}
	}
	judge("without what the policy admitted", covered, o.promised(over, o.expect.losses, byStore))
	for acc := range all {
		if acc.policy != hybrid.FailLocal {
			delete(all, acc)
		}
	}
	judge("with what the policy admitted", all, o.promised(over+1, o.expect.losses, byAny))
	return bad
}

// admissions are those not by policy, and all.
func (o *outcome) admissions() (covered, all map[account][]oracle.Admission) {
	covered, all = make(map[account][]oracle.Admission), make(map[account][]oracle.Admission)
	for i := range o.answers {
		a := &o.answers[i]
		if !a.allowed {
			continue
		}
		acc, adm := account{a.policy, a.key}, oracle.Admission{At: int64(a.end()), Cost: 1}
		all[acc] = append(all[acc], adm)
		if a.path != hybrid.PathFallback {
			covered[acc] = append(covered[acc], adm)
		}
	}
	return covered, all
}

// longestAdmitted is the longest of such calls that was admitted by the store, or
// that took so long, though it asks nobody, that the machine must have interrupted it.
func (o *outcome) longestAdmitted(counts func(*answer) bool) (longest time.Duration) {
	for i := range o.answers {
		if a := &o.answers[i]; a.allowed && counts(a) && (a.path == hybrid.PathExact || a.took > slack) {
			longest = max(longest, a.took)
		}
	}
	return longest
}

// meanShares: while no node waits for the store, FailLocal admits what the fleet
// may of a key that is in demand, or nearly: a node keeps what it was told of a
// full account for a pacing period, and arrivals are not even.
func meanShares(o *outcome) (bad []string) {
	from, to := o.began, o.ended
	for node := range o.nodes {
		for _, out := range o.of(o.outages(node)) {
			from = max(from, out.from)
		}
	}
	if o.expect.down != always || o.absent || to-from < o.limit.Period()/2 {
		return nil
	}
	admitted, asked := 0, 0
	for i := range o.answers {
		if a := &o.answers[i]; a.policy == hybrid.FailLocal && a.kind == hot && a.at >= from && a.at < to {
			asked++
			if a.allowed {
				admitted++
			}
		}
	}
	share := min(float64(asked), float64(o.limit.Count())*float64(to-from)/float64(o.limit.Period()))
	if float64(admitted) < leastShare*share {
		bad = append(bad, fmt.Sprintf("the hot key was admitted %d of %d times in %v, its share was %.0f", admitted, asked, to-from, share))
	}
	return bad
}

// leastShare is the part of the fair share that must be admitted.
const leastShare = 0.8

// secondBursts: what the policy admitted is charged when the store is back, so a
// key that was in demand all the time does not find a full account.
func secondBursts(o *outcome) (bad []string) {
	from := o.recovered()
	if o.expect.down != always || o.expect.losses > 0 {
		return nil // nobody was away for long, or the account is new
	}
	limit := o.promised(o.accuracy.Over(), 0, o.longestAdmitted(func(a *answer) bool { return a.path == hybrid.PathExact }))
	for _, p := range []hybrid.FailurePolicy{hybrid.FailLocal, hybrid.FailOpen} {
		admitted, until := 0, from
		for i := range o.answers {
			if a := &o.answers[i]; a.policy == p && a.kind == hot && a.allowed && a.path != hybrid.PathFallback && a.at >= from {
				admitted++
				until = a.end()
			}
		}
		refilled := limit.Bound(until-from) - float64(o.limit.Burst())
		if most := refilled + float64(o.limit.Burst())*secondBurst; float64(admitted) > most {
			bad = append(bad, fmt.Sprintf("%v: the hot key was admitted %d in %v after the recovery, at most %.0f expected", p, admitted, until-from, most))
		}
	}
	return bad
}

// secondBurst is the part of a burst that may be admitted at once after an
// outage: nodes come back one after the other, and the first of them do not know
// what the others have admitted.
const secondBurst = 0.25
