package key

import (
	"math"
	"testing"
	"time"

	"github.com/hybridlimit/hybrid/precheck"
	"github.com/hybridlimit/hybrid/slice"
)

func TestAPlanOfABucket(t *testing.T) {
	p := NewPlan(bucket(1000, 10*time.Second), strict)
	want := Plan{Burst: 1000, Rule: bucket(1000, 10*time.Second), Sliced: true,
		perNano: p.Rule.Rate / 1e3, nanos: 1e3 / p.Rule.Rate, slack: 1001 * p.perNano,
		horizon: int64(2500 * time.Millisecond), fill: tenSeconds}
	if *p != want {
		t.Errorf("got  %+v\nwant %+v", *p, want)
	}
}

// What a floor admits on top is charged to nobody but the limit; what is carved
// out leaves the account.
func TestFloorsAreCarved(t *testing.T) {
	rule := bucket(1000, 10*time.Second) // 1e-4 tokens per µs, 1e-7 per ns
	p := NewPlan(rule, Dial{Over: 0.1, Slices: true})
	if p.Rule != rule || p.Floor != (precheck.Size{Cap: 100, Rate: 0.1 * rule.Rate / 1e3}) || p.FloorShare != 1 {
		t.Errorf("on top: %+v", *p)
	}
	p = NewPlan(rule, Dial{Under: 0.25, Slices: true})
	if p.Rule.Burst != 750 || p.Rule.Rate != 0.75*rule.Rate || p.Floor.Cap != 250 || p.FloorShare != 0 || p.Burst != 1000 {
		t.Errorf("carved out: %+v", *p)
	}
	p = NewPlan(rule, Dial{Over: 0.1, Under: 0.3, Slices: true})
	if p.Rule.Burst != 700 || p.Floor.Cap != 400 || math.Abs(p.FloorShare-0.25) > 1e-12 {
		t.Errorf("both: %+v", *p)
	}
}

// Small limits keep what no floor could use, and an account never shrinks to
// nothing: that would be a limit of 0.
func TestFloorsOfSmallLimits(t *testing.T) {
	for _, c := range []struct {
		burst       int64
		over, under float64
		left        int64
		floors      float64
	}{
		{1, 0.1, 0.2, 1, 0},
		{3, 0.1, 0.2, 3, 0},
		{1, 0, 1, 1, 0},
		{1, 1, 0, 1, 1},
		{2, 0, 1, 1, 1},
		{1000, 0, 1, 1, 999},
		{10, 0.1, 0, 10, 1},
	} {
		p := NewPlan(bucket(c.burst, time.Second), Dial{Over: c.over, Under: c.under, Slices: true})
		if p.Rule.Burst != c.left || math.Abs(p.Floor.Cap-c.floors) > 1e-9 || p.Rule.Rate <= 0 || !p.Fits(1) {
			t.Errorf("%d, over %v, under %v: %+v", c.burst, c.over, c.under, *p)
		}
	}
}

// A window may see a full floor and its refill: half of each.
func TestFloorsOfWindowsAreHalved(t *testing.T) {
	rule := fixed(1000, 10*time.Second)
	p := NewPlan(rule, Dial{Over: 0.1, Slices: true})
	if p.Floor != (precheck.Size{Cap: 50, Rate: 0.05 * rule.Rate / 1e3}) || p.Rule != rule {
		t.Errorf("%+v", *p)
	}
}

func TestWhatIsSliced(t *testing.T) {
	for _, c := range []struct {
		name string
		rule slice.Rule
		dial Dial
		want bool
	}{
		{"a bucket", bucket(10, 100*time.Millisecond), strict, true},
		{"one that fills faster than a node can poll it", bucket(10, 79*time.Millisecond), strict, false},
		{"exact", bucket(10, time.Second), Dial{}, false},
		{"a window of a second", fixed(10, time.Second), strict, true},
		{"a shorter window", fixed(10, 999*time.Millisecond), strict, false},
	} {
		if got := NewPlan(c.rule, c.dial).Sliced; got != c.want {
			t.Errorf("%s: sliced %t", c.name, got)
		}
	}
	if p := NewPlan(bucket(100, time.Second), Dial{Over: 0.1}); p.Floor.Cap != 0 {
		t.Errorf("a limit that always asks has a floor of %v", p.Floor.Cap)
	}
}

func TestHorizonsAreBounded(t *testing.T) {
	for period, want := range map[time.Duration]time.Duration{
		time.Second: 250 * time.Millisecond, time.Minute: 15 * time.Second, 24 * time.Hour: 15 * time.Second,
	} {
		if got := NewPlan(bucket(100, period), strict).horizon; got != int64(want) {
			t.Errorf("horizon of 100 per %v: %v, want %v", period, time.Duration(got), want)
		}
	}
	slow := NewPlan(slice.Rule{Burst: slice.MaxTokens, Rate: 1e-18}, strict)
	if slow.fill != 1<<61 || slow.horizon != int64(horizonMost) {
		t.Errorf("a limit of ages: %+v", *slow)
	}
}

func TestAPlanOfNothingAdmitsNothing(t *testing.T) {
	p := NewPlan(slice.Rule{Burst: 5}, Dial{Over: 0.1, Slices: true})
	if !p.Never || p.Sliced || p.Floor.Cap != 0 || p.Fits(1) || p.Burst != 5 {
		t.Errorf("%+v", *p)
	}
	if p := NewPlan(bucket(10, time.Second), strict); !p.Fits(10) || p.Fits(11) {
		t.Error("a burst of 10 fits costs up to 10")
	}
}
