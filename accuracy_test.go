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
		{Accuracy{}, Balanced, "Balanced"},
		{Within(0.1, 0), Balanced, "Balanced"},
		{Within(0, 0), Strict, "Strict"},
		{Within(0, math.Copysign(0, -1)), Strict, "Strict"},
		{Exact, Exact, "Exact"},
		{Within(0.3, 0.05), Within(0.3, 0.05), "Within(0.3, 0.05)"},
		{Within(0, 1), Within(0, 1), "Within(0, 1)"},
	} {
		if c.got != c.want || c.got.String() != c.text {
			t.Errorf("%v, want %v, as text %q", c.got, c.want, c.text)
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
		if gotOver != over || gotUnder != under {
			t.Fatalf("Within(%v, %v) became %v", over, under, a)
		}
		if a.Over() != gotOver {
			t.Fatalf("Over is %v of %v", a.Over(), a)
		}
	})
}
