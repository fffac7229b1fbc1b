package law

import (
	"math"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// minute is the service that the documentation grows from.
var minute = Service{Nodes: 20, Keys: 1_000_000, Skew: 0.99, Rate: 50_000, Burst: 1000, Fill: time.Minute, Over: 0.1}

// Whatever the service, no key costs more than an operation per request, and nothing
// is below 0 or no number.
func TestNeverMoreThanOneOperationPerRequest(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := Service{
			Nodes: rapid.IntRange(1, 1000).Draw(t, "nodes"),
			Keys:  1,
			Rate:  math.Pow(10, rapid.Float64Range(-6, 6).Draw(t, "rate")),
			Burst: math.Round(math.Pow(10, rapid.Float64Range(0, 7).Draw(t, "burst"))),
			Fill:  time.Duration(math.Pow(10, rapid.Float64Range(9, 14).Draw(t, "fill"))),
			Over:  rapid.SampledFrom([]float64{0, 0.05, 0.1, 0.3, 1}).Draw(t, "over"),
			Since: time.Duration(rapid.IntRange(0, 1000).Draw(t, "since")) * time.Second,
		}
		c := s.Predict()
		if n := c.Operations(); !(n >= 0 && n <= s.Rate*(1+1e-9)) {
			t.Fatalf("%g operations for %g requests per second", n, s.Rate)
		}
		if !(c.Asked >= 0 && c.Refilled >= 0 && c.Paced >= 0 && c.Calls > 0 && c.Sent > 0 && c.Received > 0 && c.Remembered >= 0 && c.Remembered <= 1) {
			t.Fatalf("%+v", c)
		}
	})
}

// One key, over its load: floors keep Redis out of what is far below the limit, an
// attack costs the pace, and most of a request's cost lies in between.
func TestOneKey(t *testing.T) {
	perRequest := func(load float64) float64 {
		s := minute
		s.Keys, s.Rate = 1, load*s.Burst/s.Fill.Seconds()
		return s.Predict().Operations() / s.Rate
	}
	if n := perRequest(0.02); n > 0.001 {
		t.Errorf("at 2 %% of its limit a key costs %g operations per request", n)
	}
	for _, c := range []struct{ load, want float64 }{{0.5, 0.056}, {0.95, 0.058}, {1.4, 0.143}, {10, 0.0185}} { // docs/accuracy.md
		if n := perRequest(c.load); math.Abs(n/c.want-1) > 0.2 {
			t.Errorf("load %g costs %.4f operations per request, measured are %.4f", c.load, n, c.want)
		}
	}
	if a, b := 1e4*perRequest(1e4), 1e5*perRequest(1e5); math.Abs(a/b-1) > 1e-9 {
		t.Errorf("an attack that is ten times as strong costs %g instead of %g", b, a)
	}
}

// A limit of which floors get less than a token each costs far more.
func TestFloorsNeedATokenEach(t *testing.T) {
	more := minute
	more.Nodes = 200
	if a, b := minute.Predict().Operations(), more.Predict().Operations(); b < 5*a {
		t.Errorf("%.0f operations per second on 20 nodes, %.0f on 200", a, b)
	}
}

// The most that one Redis bears is the most.
func TestOneRedis(t *testing.T) {
	s := minute
	s.Rate = s.One()
	if busy := s.Predict().Busy(); s.Rate < 10_000 || busy > Enough || busy < 0.95*Enough {
		t.Errorf("at %.0f requests per second Redis is busy for %.3f", s.Rate, busy)
	}
}
