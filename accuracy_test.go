package hybrid

import (
	"math"
	"testing"

	"pgregory.net/rapid"
)

func TestEqualDialsAreEqual(t *testing.T) {
	for _, c := range []struct {
		got, want Accuracy
		text      string
	}{
		{Accuracy(0), Balanced, "Balanced"},
		{Within(0.1, 0), Balanced, "Balanced"},
		{Within(0, 0), Strict, "Strict"},
		{Within(0, math.Copysign(0, -1)), Strict, "Strict"},
		{Exact, Exact, "Exact"},
		{Within(0.3, 0.05), Within(0.3, 0.05), "Within(0.3, 0.05)"},
		{Within(0, 1), Within(0, 1), "Within(0, 1)"},
	} {
		if c.got != c.want || c.got.String() != c.text {
			t.Errorf("%v (%#x), want %v, as text %q", c.got, uint64(c.got), c.want, c.text)
		}
	}
}

func TestDialsKeepTheirParts(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		over, under := rapid.Float64Range(0, 1).Draw(t, "over"), rapid.Float64Range(0, 1).Draw(t, "under")
		a := Within(over, under)
		if err := a.validate(); err != nil {
			t.Fatal(err)
		}
		gotOver, gotUnder := a.parts()
		if math.Abs(gotOver-over) > 1e-9 || math.Abs(gotUnder-under) > 1e-9 {
			t.Fatalf("Within(%v, %v) became %v", over, under, a)
		}
		if a.Over() != gotOver {
			t.Fatalf("Over is %v of %v", a.Over(), a)
		}
	})
}

// Any number may be put where an Accuracy belongs: it is valid or refused.
func TestNoAccuracyPanics(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		a := Accuracy(rapid.Uint64().Draw(t, "a"))
		_ = a.String()
		if a.validate() == nil {
			if over, under := a.parts(); over < 0 || over > 1 || under < 0 || under > 1 {
				t.Fatalf("%#x is valid with %v and %v", uint64(a), over, under)
			}
		}
	})
}
