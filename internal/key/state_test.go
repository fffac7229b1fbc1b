package key

import (
	"errors"
	"testing"
	"time"

	"github.com/hybridlimit/hybrid/slice"
)

var errLost = errors.New("no reply")

// Of an evicted key that no request pays for nothing is sent any more: what it held ends
// with its lease, and what it owed is lost, which Flush and Close report.
func TestAnEvictedKeyIsForgotten(t *testing.T) {
	for _, owes := range []bool{false, true} {
		n := newNode(t, NewPlan(bucket(60_000, time.Minute), strict))
		n.hold()
		n.s.count(&Step{Env: n.step().Env})
		n.s.budget.operations = 0
		n.s.poll.promisedRetryAt = n.now + int64(24*time.Hour)
		if owes {
			n.s.debt.charged = 5
		}
		n.retired = true
		done := n.do((*State).Evict)
		equal(t, "sent", done.Send, SendNothing)
		equal(t, "idle", done.Idle, true)
		equal(t, "lost", done.Lost, owes)
		equal(t, "tokens left", n.cell.Tokens(), 0)
	}
}

// An evicted key whose requests have paid returns its slice and tells what it owes.
func TestAnEvictedKeySettles(t *testing.T) {
	n := newNode(t, NewPlan(bucket(60_000, time.Minute), strict))
	n.hold()
	n.do(func(s *State, t *Step) { s.Charge(t, n.cell.Tokens()+500) })
	n.retired = true
	n.do((*State).Evict)
	st := n.settle()
	if st.Usage.Charged != 500 || st.Usage.Held != 0 || n.account.Lent() != 0 {
		t.Errorf("settled %+v, %v lent", st.Usage, n.account.Lent())
	}
	equal(t, "idle", n.done.Idle, true)
}

// There is nothing to do about a slice in doubt on an exhausted key until its lease ends:
// looking at it again and again would keep a core busy.
func TestAnExhaustedKeyInDoubtIsLeftAlone(t *testing.T) {
	n := newNode(t, NewPlan(bucket(60_000, time.Minute), strict))
	n.hold()
	n.doubt()
	n.s.poll.exhausted, n.s.poll.next = true, n.now
	done := n.do((*State).Next)
	if wait := time.Duration(done.Due - n.now); wait < time.Second {
		t.Errorf("the next look is in %v", wait)
	}
	n.wait(3 * time.Minute)
	n.do((*State).Look)
	equal(t, "holds", n.s.hold.lease.Holds(), false)
}

// A charge does not wait for the end of a lease in doubt.
func TestAKeyInDoubtStillTellsItsCharges(t *testing.T) {
	n := newNode(t, NewPlan(bucket(60_000, time.Minute), strict))
	n.hold()
	n.doubt()
	done := n.do(func(s *State, t *Step) { s.Charge(t, n.cell.Tokens()+7) })
	if due := time.Duration(done.Due - n.now); done.Timer != TimerBy || due > 120*time.Millisecond {
		t.Errorf("looked at in %v", due)
	}
	n.wait(120 * time.Millisecond)
	n.do((*State).Look) // its last token is used: a new slice can begin
	equal(t, "sent", n.do((*State).Look).Send, SendLater)
	st := n.settle()
	if st.Usage.Charged < 7 || st.Usage.Tag != (slice.Tag{}) {
		t.Errorf("settled %+v", st.Usage)
	}
}

// The demand of an exhausted key ebbs away: when the next poll would ask for less than
// one cost, it is not sent, and the next request asks again.
func TestAnEbbingFloodIsLeftToItsRequests(t *testing.T) {
	n := newNode(t, NewPlan(bucket(100, 10*time.Second), strict))
	n.account.Settle(n.now/1000, n.plan.Rule, slice.Usage{Charged: 100})
	for range 100 {
		n.ask(1)
		n.settled()
		n.wait(10 * time.Millisecond)
	}
	equal(t, "exhausted", n.s.poll.exhausted, true)
	n.s.demand.tokens.count, n.s.demand.attempts, n.s.budget.operations = 0, 1, 10
	n.wait(10 * time.Second)
	equal(t, "sent", n.do((*State).Look).Send, SendNothing)
	equal(t, "exhausted", n.s.poll.exhausted, false)
}

// Where no request has paid for a renewal or a return, the lease runs out, and the store
// hears nothing.
func TestAnUnpaidLeaseEndsInSilence(t *testing.T) {
	n := newNode(t, NewPlan(bucket(60_000, time.Minute), strict))
	n.hold()
	n.do((*State).Count)
	n.s.budget.operations = 0
	for i := 0; n.cell.Alive(&n.dead) > 0; i++ {
		if done := n.do((*State).Look); done.Send != SendNothing {
			t.Fatalf("sent %v after %d looks", done.Send, i)
		}
		n.wait(time.Second)
	}
	if early := start + int64(2*time.Minute) - n.now; early < int64(time.Second) || early > int64(4*time.Second) {
		t.Errorf("the slice ended %v before its lease in the store", time.Duration(early))
	}
	n.do((*State).Look)
	equal(t, "holds", n.s.hold.lease.Holds(), false)
}

// A holder keeps of a scarce account what it uses in a poll interval; if the rest is
// below the refused cost, everything goes.
func TestAHolderReleasesWhatItDoesNotUse(t *testing.T) {
	for _, c := range []struct{ cost, least, most int64 }{{50, 14, 17}, {90, 0, 0}} {
		n := newNode(t, NewPlan(bucket(60_000, time.Minute), strict))
		n.hold()
		for i := 0; n.cell.Tokens() < 100; i++ {
			n.ask(1)
			n.settled()
			n.wait(5 * time.Millisecond)
			if i > 10_000 {
				t.Fatal("no slice of 100")
			}
		}
		n.cell.TakeUpTo(n.cell.Tokens()-100, &n.dead)
		n.do((*State).Count)
		n.s.demand.unit, n.s.demand.largest, n.s.budget.operations = 1, 0, 10
		n.s.demand.tokens = decaying{count: 4 * 15, at: n.now} // 4 per s over 15 s; the interval is 3 s
		before := n.s.hold.lent
		done := n.do(func(s *State, t *Step) { s.Release(t, slice.Mark{Cost: c.cost, At: n.now / 1000}, false) })
		equal(t, "sent", done.Send, SendLater)
		n.settle()
		if left := n.cell.Tokens(); left < c.least || left > c.most || done.Tally.Reclaimed != 100-left {
			t.Errorf("cost %d: %d left of %d lent, %d released", c.cost, left, before, done.Tally.Reclaimed)
		}
		again := n.do(func(s *State, t *Step) { s.Release(t, slice.Mark{Cost: c.cost, At: start / 1000}, false) })
		equal(t, "sent for an older request", again.Send, SendNothing)
	}
}
