package batch

import (
	"errors"
	"testing"
	"time"
)

const breakerTimeout = 20 * time.Millisecond

// driven is a breaker that a test drives by hand.
type driven struct {
	breaker
	changes []bool
	causes  []error
}

func newDriven() *driven {
	b := &driven{}
	b.timeout = int64(breakerTimeout)
	b.changed = func(open bool, cause error) {
		b.changes = append(b.changes, open)
		b.causes = append(b.causes, cause)
	}
	return b
}

func (b *driven) ok(at, took time.Duration)           { b.answered(int64(at), int64(took)) }
func (b *driven) bad(at time.Duration)                { b.failed(int64(at), ErrTimeout) }
func (b *driven) refused(at time.Duration, err error) { b.failed(int64(at), err) }

// Calls that were under way when the store paused for 25 ms time out together;
// the pause is over before a request could have waited twice.
func TestAPauseDoesNotTrip(t *testing.T) {
	b := newDriven()
	b.ok(0, time.Millisecond)
	for at := 1020 * time.Millisecond; at <= 1025*time.Millisecond; at += time.Millisecond / 2 {
		b.bad(at)
	}
	b.ok(1025*time.Millisecond, 25*time.Millisecond)
	b.ok(1026*time.Millisecond, time.Millisecond)
	if b.open.Load() || len(b.changes) != 0 {
		t.Errorf("changes %v", b.changes)
	}
}

func TestThreeTimeoutsAtOnceDoNotTrip(t *testing.T) {
	b := newDriven()
	for range 3 {
		b.bad(time.Second)
	}
	if b.open.Load() {
		t.Error("open after one moment of failures")
	}
}

// Silence for twice the timeout, counted from when the first caller began to
// wait, with three failures in it, is an outage.
func TestSilenceTrips(t *testing.T) {
	b := newDriven()
	b.bad(1020 * time.Millisecond) // began at 1000
	b.bad(1030 * time.Millisecond)
	b.bad(1039 * time.Millisecond)
	if b.open.Load() {
		t.Fatal("open 39 ms after the first call")
	}
	b.bad(1040 * time.Millisecond)
	if !b.open.Load() {
		t.Fatal("closed 40 ms after the first call")
	}
	b.bad(1050 * time.Millisecond)
	if len(b.changes) != 1 || !errors.Is(b.causes[0], ErrTimeout) {
		t.Errorf("changes %v because of %v", b.changes, b.causes)
	}
}

func TestTwoFailuresAreTooFew(t *testing.T) {
	b := newDriven()
	b.bad(time.Second)
	b.bad(time.Hour)
	if b.open.Load() {
		t.Error("open after two failures")
	}
}

// Refusals cost no time, and mean an outage all the same once they last.
func TestRefusalsTrip(t *testing.T) {
	b := newDriven()
	for at := time.Second; !b.open.Load(); at += time.Millisecond {
		b.refused(at, errGone)
		if at > time.Second+breakerTimeout {
			t.Fatal("still closed")
		}
	}
	if !errors.Is(b.causes[0], errGone) {
		t.Errorf("because of %v", b.causes[0])
	}
}

func TestTheFirstTimelyAnswerCloses(t *testing.T) {
	b := newDriven()
	for at := time.Second; !b.open.Load(); at += 10 * time.Millisecond {
		b.bad(at)
	}
	b.ok(2*time.Second, 21*time.Millisecond)
	if !b.open.Load() {
		t.Fatal("a late answer closed it")
	}
	b.ok(3*time.Second, 20*time.Millisecond)
	if b.open.Load() {
		t.Fatal("a timely answer did not close it")
	}
	// The failures of the outage count no more.
	b.bad(4 * time.Second)
	b.bad(5 * time.Second)
	if b.open.Load() || len(b.changes) != 2 {
		t.Errorf("changes %v", b.changes)
	}
}

// A store that answers all, but one in ten too late, makes every tenth request
// wait in vain. More than 10 late ones in a second are no accident.
func TestASlowStoreTrips(t *testing.T) {
	b := newDriven()
	late := 0
	for i := 0; !b.open.Load() && i < 1000; i++ {
		took := time.Millisecond
		if i%10 == 9 {
			took = 30 * time.Millisecond
			late++
		}
		b.ok(time.Second+time.Duration(i)*time.Millisecond/2, took)
	}
	if late != 11 || !b.open.Load() {
		t.Errorf("open %t after %d late answers", b.open.Load(), late)
	}
	if !errors.Is(b.causes[0], ErrSlow) {
		t.Errorf("because of %v", b.causes[0])
	}
}

func TestOneLateAnswerInTwentyIsWell(t *testing.T) {
	b := newDriven()
	for i := range 10_000 {
		took := time.Millisecond
		if i%20 == 19 {
			took = 30 * time.Millisecond
		}
		b.ok(time.Duration(i)*time.Millisecond/2, took)
	}
	if len(b.changes) != 0 {
		t.Errorf("changes %v", b.changes)
	}
}

func TestEachSecondIsJudgedAlone(t *testing.T) {
	b := newDriven()
	for s := range 20 {
		for range 10 {
			b.ok(time.Duration(s)*time.Second, 30*time.Millisecond)
		}
	}
	if len(b.changes) != 0 {
		t.Errorf("changes %v", b.changes)
	}
}

// Callers run out of time before a client that tries again says why. The cause is
// what it said, if it has said it.
func TestTheCauseIsWhatTheClientSaid(t *testing.T) {
	b, refused := newDriven(), errors.New("connection refused")
	b.refused(time.Second, refused)
	b.bad(1020 * time.Millisecond)
	b.bad(1040 * time.Millisecond)
	if len(b.causes) != 1 || !errors.Is(b.causes[0], refused) {
		t.Errorf("changes %v because of %v", b.changes, b.causes)
	}
	b.ok(2*time.Second, time.Millisecond)
	for i := range 3 {
		b.bad(3*time.Second + time.Duration(i)*breakerTimeout)
	}
	if len(b.causes) != 3 || !errors.Is(b.causes[2], ErrTimeout) {
		t.Errorf("changes %v because of %v", b.changes, b.causes)
	}
}

// A store that answers probes and fails at everything else opens the breaker ever
// more rarely, once a second in the end; one that has been well for a second is
// believed at once again.
func TestFlappingIsDamped(t *testing.T) {
	b := newDriven()
	at := 10 * time.Second
	outage := func() {
		for range leastFailures {
			b.bad(at)
			at += breakerTimeout
		}
	}
	for end := at + 10*time.Second; at < end; at += breakerTimeout {
		outage()
		b.ok(at, time.Millisecond)
	}
	if n := len(b.changes); n < 10 || n > 34 {
		t.Errorf("%d changes in 10 s", n)
	}
	for b.open.Load() {
		b.ok(at, time.Millisecond)
		at += breakerTimeout
	}
	at += 2 * time.Second
	outage()
	if b.ok(at, time.Millisecond); b.open.Load() {
		t.Error("a store that was well for 2 s is not believed")
	}
}

// The call that shows that a store is too slow may itself be quick: it does not take
// back what it has shown.
func TestTheLastCallOfASlowSecondMayBeQuick(t *testing.T) {
	b, at := newDriven(), time.Second
	for range leastSlow + 1 {
		b.ok(at, 21*time.Millisecond)
		at += time.Millisecond
	}
	for range leastSample - leastSlow - 1 {
		b.ok(at, time.Millisecond)
		at += time.Millisecond
	}
	if len(b.changes) != 1 || !b.open.Load() {
		t.Errorf("changes %v", b.changes)
	}
}
