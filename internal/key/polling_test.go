package key

import (
	"math"
	"testing"
	"time"

	"github.com/hybridlimit/hybrid/precheck"
)

// A denial may outlast the time that callers were given, and never lasts for more than 10 s.
func TestAStretchedDenialIsBounded(t *testing.T) {
	const now, ms = int64(time.Hour), int64(time.Millisecond)
	for _, c := range []struct{ until, retry, want int64 }{
		{100 * ms, 100 * ms, 150 * ms},
		{100 * ms, 400 * ms, 450 * ms},
		{9990 * ms, 9990 * ms, 10_000 * ms},
		{100 * ms, int64(time.Hour), 10_000 * ms},
		{100 * ms, math.MaxInt64 - 1 - now, 10_000 * ms},
		{10_000 * ms, 10_000 * ms, 10_000 * ms},
	} {
		p := polling{next: now + 5*ms, deny: &precheck.Memo{Cost: 3, Until: now + c.until, Retry: now + c.retry}}
		p.stretch(now, 50*ms)
		if p.deny.Until != now+c.want || p.deny.Cost != 3 || p.deny.Retry != now+c.retry {
			t.Errorf("until %v, told %v: %v, want %v", c.until/ms, c.retry/ms, (p.deny.Until-now)/ms, c.want/ms)
		}
	}
	var p polling
	p.stretch(now, 50*ms)
	if p.deny != nil {
		t.Error("a denial out of nothing")
	}
}

// A refused caller keeps the time that it was given: later refusals do not put it off.
func TestAPromisedTimeIsKept(t *testing.T) {
	const now = int64(time.Hour)
	p := polling{next: math.MaxInt64}
	p.refuse(2, now+500, now+2000, true, now, 0)
	equal(t, "promised", p.promisedRetryAt, now+2000)
	p.refuse(5, now+5000, now+9000, false, now+100, 0)
	equal(t, "the denial ends by then", p.deny.Until, now+2000)
	equal(t, "promised", p.promisedRetryAt, now+2000)
	equal(t, "the smaller cost is still denied", p.deny.Cost, 2)
	equal(t, "the next poll", p.next, now+500)
}

// Of debts a charge of unknown outcome is told again, and what was given back is not.
func TestDebtsAfterACall(t *testing.T) {
	var d debt
	d.charge(7)
	d.admitted = 3
	d.giveBack(4, 1000, 0)
	d.giveBack(2, 500, 0)
	u := usage(&d)
	if u.Charged != 7 || u.Fallback != 3 || u.Return != 6 || u.ReturnAt != 500 || d.owes() {
		t.Errorf("told %+v, still owes %+v", u, d)
	}
	d.requeueUnanswered(u)
	if again := usage(&d); again.Charged != 7 || again.Fallback != 3 || again.Return != 0 {
		t.Errorf("after an unknown outcome %+v", again)
	}
	d.requeue(u)
	if again := usage(&d); again.Charged != 7 || again.Return != 6 || again.ReturnAt != 500 {
		t.Errorf("after a settle that did not run %+v", again)
	}
}

// What belongs to a window that is over is dropped with it.
func TestDebtsStayInTheirWindow(t *testing.T) {
	var d debt
	d.enter(5)
	d.charge(7)
	d.giveBack(4, 1000, 5)
	d.giveBack(9, 900, 4) // of the window before: dropped
	d.enter(5)
	u := usage(&d)
	if u.Charged != 7 || u.Return != 4 || u.Tag.Window != 5 {
		t.Errorf("told %+v", u)
	}
	d.requeue(u)
	d.enter(6)
	if d.owes() {
		t.Errorf("in the next window %+v", d)
	}
	d.requeue(u)
	if d.owes() {
		t.Errorf("a settle of the last window came back: %+v", d)
	}
}
