package oracle

import (
	"math"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"
)

func TestBucketHoldsAtItsBound(t *testing.T) {
	l := New(10, time.Second, 4)
	held := []Admission{{0, 4}, {int64(100 * time.Millisecond), 1}, {int64(time.Second), 4}}
	if r := l.Check(held); !r.Held() || r.Total != 9 {
		t.Fatalf("got %+v", r)
	}
}

func TestBucketReportsTheWorstInterval(t *testing.T) {
	l := New(10, time.Second, 4)
	at := func(ms int64) int64 { return ms * int64(time.Millisecond) }
	// Out of order on purpose; the second burst holds 6 tokens in 100 ms.
	r := l.Check([]Admission{{at(5100), 3}, {at(0), 4}, {at(5000), 3}})
	if r.Held() || r.Err() == nil {
		t.Fatalf("6 tokens in 100 ms of a burst of 4 were held: %+v", r)
	}
	if r.From != at(5000) || r.To != at(5100) || r.Admitted != 6 || math.Abs(r.Excess-1) > 1e-9 {
		t.Fatalf("got %+v", r)
	}
	if r = l.Over(0.2).Check([]Admission{{at(5100), 3}, {at(5000), 3}}); !r.Held() {
		t.Fatalf("4.8 + 1.2 is the bound with 20 %% over: %+v", r)
	}
}

func TestWindowCountsEachWindowAlone(t *testing.T) {
	l := NewWindow(5, time.Second)
	s := int64(time.Second)
	if r := l.Check([]Admission{{s - 1, 5}, {s, 5}, {-1, 5}, {0, 0}}); !r.Held() {
		t.Fatalf("a full window beside a full window: %+v", r)
	}
	if r := l.Check([]Admission{{-s, 3}, {-1, 3}}); r.Held() {
		t.Fatalf("6 in one window of 5, before the epoch: %+v", r)
	}
}

func TestNothingAdmitted(t *testing.T) {
	if r := New(1, time.Second, 1).Check(nil); !r.Held() || r.Excess != -1 {
		t.Fatalf("got %+v", r)
	}
	if r := New(0, time.Second, 0).Check([]Admission{{0, 1}}); r.Held() {
		t.Fatal("a limit of 0 admits nothing")
	}
}

// history draws a limit and admissions around its capacity, sorted by time.
func history(t *rapid.T) (Limit, []Admission) {
	l := New(rapid.Int64Range(0, 50).Draw(t, "count"),
		time.Duration(rapid.Int64Range(1, int64(time.Minute)).Draw(t, "period")),
		rapid.Int64Range(0, 30).Draw(t, "burst"))
	if rapid.Bool().Draw(t, "window") {
		l = NewWindow(rapid.Int64Range(0, 30).Draw(t, "quota"), time.Duration(rapid.Int64Range(1, 5e9).Draw(t, "length")))
	}
	at := rapid.Int64Range(-1e12, 1e12).Draw(t, "start")
	var out []Admission
	for range rapid.IntRange(0, 25).Draw(t, "n") {
		at += rapid.Int64Range(0, 2e9).Draw(t, "gap")
		out = append(out, Admission{At: at, Cost: rapid.Int64Range(0, 20).Draw(t, "cost")})
	}
	return l, out
}

// bruteForce is the definition: every interval between two admissions.
func bruteForce(l Limit, admissions []Admission) float64 {
	worst := -l.burst
	for i := range admissions {
		var sum float64
		for _, a := range admissions[i:] {
			if l.window > 0 && floorDiv(a.At, l.window) != floorDiv(admissions[i].At, l.window) {
				break
			}
			sum += float64(a.Cost)
			worst = max(worst, sum-l.Bound(time.Duration(a.At-admissions[i].At)))
		}
	}
	return worst
}

func floorDiv(at int64, w time.Duration) int64 {
	return int64(math.Floor(float64(at) / float64(w)))
}

func TestReplayJudgesEveryInterval(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		l, admissions := history(t)
		r := l.Check(admissions)
		want := bruteForce(l, admissions)
		if math.Abs(r.Excess-want) > 1e-6 {
			t.Fatalf("replay says %g, all intervals say %g", r.Excess, want)
		}
		if r.Total == 0 {
			return
		}
		var inside int64
		for _, a := range admissions {
			if a.At >= r.From && a.At <= r.To {
				inside += a.Cost
			}
		}
		// Admissions at the very moments of From and To may lie just outside.
		if inside < r.Admitted {
			t.Fatalf("report says %d from %d to %d, counted %d", r.Admitted, r.From, r.To, inside)
		}
	})
}

// The ideal's own admissions never break the bound, and it denies only what
// would: so it is the most that any limiter may admit request by request.
func TestIdealIsTightAndWithinTheBound(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		l, offers := history(t)
		ideal := NewIdeal(l)
		var admitted []Admission
		for _, o := range offers {
			next := slices.Concat(admitted, []Admission{o})
			fits := l.Check(next).Excess <= 1e-6
			room := l.Check(next).Excess
			got := ideal.Allow(o.At, o.Cost)
			if got != fits && math.Abs(room) > 1e-6 {
				t.Fatalf("ideal says %v to %+v, the bound %v (%g)", got, o, fits, room)
			}
			if got {
				admitted = next
			}
		}
	})
}

// A limiter that answers as the ideal does has ratio 1 and no false denial.
func TestCompareWithItself(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		l, offers := history(t)
		ideal := NewIdeal(l)
		requests := make([]Request, len(offers))
		for i, o := range offers {
			requests[i] = Request{At: o.At, Cost: o.Cost, Allowed: ideal.Allow(o.At, o.Cost)}
		}
		o := l.Compare(requests)
		if o.Ratio() != 1 || o.FalseDenials != 0 || o.Admitted != o.Ideal {
			t.Fatalf("got %+v", o)
		}
	})
}

func TestFalseDenialsAreNotHiddenByOverAdmission(t *testing.T) {
	l := New(1, time.Second, 2)
	s := int64(time.Second)
	o := l.Compare([]Request{
		{At: 0, Cost: 1, Allowed: true}, {At: 0, Cost: 1, Allowed: true},
		{At: 0, Cost: 1, Allowed: true}, // one too many
		{At: 5 * s, Cost: 1},            // denied, though the account is full again
	})
	if o.Admitted != 3 || o.Ideal != 3 || o.FalseDenials != 1 {
		t.Fatalf("got %+v", o)
	}
}
