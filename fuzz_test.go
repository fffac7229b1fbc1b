package hybrid

import (
	"errors"
	"math"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hybridlimit/hybrid/internal/ledger"
	"github.com/hybridlimit/hybrid/internal/oracle"
)

// FuzzAccuracy makes dials of any parts: each is refused by Limiter, or has parts that make sense and is what it
// says.
func FuzzAccuracy(f *testing.F) {
	for _, part := range []float64{0, math.Copysign(0, -1), 0.1, 0.3, 1, 1 + 1e-9, -1e-9, 4e-10, 5e-10, 1e-300, math.NaN(), math.Inf(1), math.Inf(-1), math.MaxFloat64} {
		f.Add(part, 0.0)
		f.Add(0.05, part)
	}
	f.Fuzz(func(t *testing.T, over, under float64) {
		valid := over >= 0 && over <= 1 && under >= 0 && under <= 1
		if a := Within(over, under); valid != (a.validate() == nil) {
			t.Fatalf("Within(%v, %v): %v", over, under, a.validate())
		}
		for _, a := range []Accuracy{Within(over, under), Balanced, Strict, Exact} {
			if a.String() == "" {
				t.Fatal("says nothing")
			}
			if err := a.validate(); err != nil {
				if !errors.Is(err, ErrInvalidAccuracy) {
					t.Fatalf("%v: %v", a, err)
				}
				continue
			}
			d := a.dial()
			if !(d.Over >= 0 && d.Over <= 1 && d.Under >= 0 && d.Under <= 1) || d.Over != a.Over() || d.Slices != (a != Exact) {
				t.Fatalf("%v: %+v", a, d)
			}
			if again := Within(d.Over, d.Under); a != Exact && again.dial() != d {
				t.Fatalf("%v: %+v, and made of that %+v", a, d, again.dial())
			}
		}
	})
}

// FuzzLimitFor lets LimitFor answer anything, and another thing each time: requests get an answer without
// an error, no more than the larger limit is admitted, and the numbers of results are in their ranges.
func FuzzLimitFor(f *testing.F) {
	for _, n := range []int64{math.MinInt64, -1, 0, 1, 3, 1 << 53, math.MaxInt64} {
		f.Add(n, int64(time.Second), n, true, int64(5), int64(time.Hour), uint8(1), int64(1))
		f.Add(int64(100), n, int64(7), false, n, int64(time.Millisecond), uint8(5), n)
	}
	f.Add(int64(10), int64(time.Minute), int64(10), false, int64(100), int64(time.Minute), uint8(0), int64(2))
	f.Add(int64(10), int64(time.Microsecond), int64(1), true, int64(1), int64(1<<53)*1000, uint8(2), int64(1))
	f.Fuzz(func(t *testing.T, count, period, burst int64, bursts bool, count2, period2 int64, dial uint8, cost int64) {
		first, second := Per(count, time.Duration(period)), Window(count2, time.Duration(period2))
		if dial&8 != 0 {
			second = Per(count2, time.Duration(period2))
		}
		if bursts {
			first = first.WithBurst(burst)
		}
		accuracy := []Accuracy{Balanced, Strict, Exact, Within(0, 0.5)}[dial&3]
		synctest.Test(t, func(t *testing.T) { anyTier(t, first, second, accuracy, cost) })
	})
}

func anyTier(t *testing.T, first, second Limit, accuracy Accuracy, cost int64) {
	calls := 0
	limitFor := func(string) (Limit, bool) {
		calls++
		if calls%3 == 0 {
			return second, true
		}
		return first, calls%5 > 0
	}
	own := PerMinute(3)
	n, l := onLedger(t, ledger.NewStore(), Options{SyncInterval: time.Second}, own, &LimiterOptions{Accuracy: accuracy, LimitFor: limitFor})
	most := int64(0)
	for _, limit := range []Limit{own, first, second} {
		if limit.Validate() == nil {
			most = max(most, limit.Burst())
		}
	}
	for i := range 12 {
		r, err := l.AllowN(ctx, "k", cost)
		switch misuse := cost < 0; {
		case misuse != errors.Is(err, ErrInvalidCost) || !misuse && err != nil:
			t.Fatalf("cost %d: %v", cost, err)
		case misuse:
			continue
		case r.Remaining < 0 || r.Remaining > r.Limit || r.Limit > most || r.ResetAfter < 0 || r.Allowed != (r.RetryAfter == 0):
			t.Fatalf("request %d of cost %d, under %v and %v: %+v", i, cost, first, second, r)
		case r.Allowed && cost > most:
			t.Fatalf("cost %d of at most %d: %+v", cost, most, r)
		}
		if i%4 == 3 {
			time.Sleep(1500 * time.Millisecond)
		}
	}
	if err := n.Close(); err != nil {
		t.Fatal(err)
	}
}

// FuzzBound gives a fleet any limit and any requests: it admits no more than the bound.
func FuzzBound(f *testing.F) {
	f.Add(int64(10), int64(1000), int64(10), false, uint8(1), []byte{1, 1, 1, 200, 5, 5, 5, 100, 10, 0, 1, 1})
	f.Add(int64(1000), int64(60000), int64(1000), false, uint8(0), []byte{255, 200, 100, 90, 3, 250, 255, 250, 255, 250, 100, 100})
	f.Add(int64(100), int64(1000), int64(100), true, uint8(1), []byte{60, 40, 1, 251, 60, 40, 1, 255, 99, 1, 1})
	f.Add(int64(3), int64(7), int64(50), false, uint8(2), []byte{50, 1, 201, 1, 1, 1, 202})
	f.Fuzz(func(t *testing.T, count, millis, burst int64, windowed bool, dial uint8, script []byte) {
		limit := Per(count, time.Duration(millis)*time.Millisecond).WithBurst(burst)
		if windowed {
			limit = Window(count, time.Duration(millis)*time.Millisecond)
		}
		if millis < 1 || millis > 100_000 || count < 1 || limit.Validate() != nil || len(script) > 400 {
			t.Skip()
		}
		accuracy := []Accuracy{Balanced, Strict, Exact, Within(0, 0.3)}[dial%4]
		synctest.Test(t, func(t *testing.T) { anyLoad(t, limit, accuracy, script) })
	})
}

// anyLoad is requests of three nodes by a script: bytes to 199 are costs, as parts of 199 of the burst or small
// ones, others are pauses.
func anyLoad(t *testing.T, limit Limit, accuracy Accuracy, script []byte) {
	store := ledger.NewStore()
	var nodes [3]*Node
	var limiters [3]*Limiter
	for i := range nodes {
		nodes[i], limiters[i] = onLedger(t, store, Options{}, limit, &LimiterOptions{Accuracy: accuracy})
	}
	judge := oracle.NewChecker(oracleOf(limit).Over(accuracy.Over()))
	start := time.Now()
	for i, b := range script {
		if time.Since(start) > 5*time.Minute {
			break // each second of it takes the fuzzer some of its own time
		}
		if b >= 200 {
			time.Sleep(limit.Period() / 1000 * time.Duration(b-199) * time.Duration(b-199))
			continue
		}
		cost := int64(b)
		if b >= 100 {
			cost = max(1, int64(float64(b-100)/99*float64(limit.Burst())))
		}
		r, err := limiters[i%3].AllowN(ctx, "k", cost)
		if err != nil || !r.Allowed && r.RetryAfter <= 0 || r.Path == PathFallback {
			t.Fatalf("cost %d: %+v, %v", cost, r, err)
		}
		if r.Allowed && cost > 0 {
			judge.Add(oracle.Admission{At: time.Now().UnixNano(), Cost: cost})
		}
	}
	if err := judge.Report().Err(); err != nil {
		t.Fatalf("%v %v: %v", limit, accuracy, err)
	}
	for _, n := range nodes {
		if err := n.Close(); err != nil {
			t.Fatal(err)
		}
	}
}
