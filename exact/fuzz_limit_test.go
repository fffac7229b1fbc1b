package exact

import (
	"errors"
	"math"
	"testing"
	"time"

	"github.com/hybridlimit/hybrid/internal/ledger"
	"github.com/hybridlimit/hybrid/slice"
)

// FuzzLimit makes limits of any numbers: each is refused by Validate, or gives a
// rule that the store accepts.
func FuzzLimit(f *testing.F) {
	for _, n := range []int64{math.MinInt64, -1, 0, 1, 1000, 1 << 53, 1<<53 + 1, math.MaxInt64} {
		f.Add(n, int64(time.Second), n, false, true)
		f.Add(n, int64(time.Minute), int64(7), true, false)
		f.Add(int64(5), n, n, true, n > 1)
	}
	f.Add(int64(3), int64(1<<53)*1000, int64(9), false, false)
	f.Fuzz(func(t *testing.T, count, period, burst int64, bursts, windowed bool) {
		l := Per(count, time.Duration(period))
		if windowed {
			l = Window(count, time.Duration(period))
		}
		if bursts {
			l = l.WithBurst(burst)
		}
		if l.String() == "" {
			t.Fatal("says nothing")
		}
		if err := l.Validate(); err != nil {
			if !errors.Is(err, ErrInvalidLimit) {
				t.Fatalf("%v: %v", l, err)
			}
			return
		}
		r := l.Rule()
		if l.Count() == 0 {
			if r.Burst != 0 || r.Rate != 0 {
				t.Fatalf("%v: %+v", l, r)
			}
			return
		}
		u := slice.Usage{Needs: []slice.Need{{Cost: l.Burst(), Count: 1}, {Cost: 1, Count: 1}}}
		if !ledger.Sound(r, u) || l.Windowed() != (r.Window > 0) {
			t.Fatalf("%v: %+v", l, r)
		}
		var a ledger.Account
		g, _ := a.Settle(1.8e15, r, u)
		if g.Admitted[0] != 1 || g.Admitted[1] != 0 {
			t.Fatalf("%v: the burst and one more: %v", l, g.Admitted)
		}
	})
}
