package precheck

import (
	"math"
	"testing"

	"pgregory.net/rapid"
)

func TestABucketFillsAndServes(t *testing.T) {
	size := Size{Cap: 10, Rate: 0.5}
	var b Bucket
	b.Set(3, 100)
	if !b.Take(100, 3, size) || b.Take(101, 1, size) || !b.Take(102, 1, size) {
		t.Error("3 tokens, and one each 2 ns")
	}
	if got := b.Wait(102, 4, size); got != 8 {
		t.Errorf("wait %d, want 8", got)
	}
	if got := b.Lack(104, size); got != 9 {
		t.Errorf("lacks %g, want 9", got)
	}
	b.Put(104, 2, size)
	if got := b.Level(50, size); got != 3 {
		t.Errorf("level %g, want 3, and the past changes nothing", got)
	}
	if b.Wait(104, 3, size) != 0 || b.Wait(104, 11, size) != math.MaxInt64 || b.Wait(104, 4, Size{Cap: 10}) != math.MaxInt64 {
		t.Error("waits at the edges")
	}
}

func TestABiggerSizeMustBeEarned(t *testing.T) {
	var b Bucket
	b.Set(10, 0)
	if got := b.Level(0, Size{Cap: 100, Rate: 1}); got != 10 {
		t.Errorf("level %g appeared", got)
	}
	if got := b.Level(0, Size{Cap: 4, Rate: 1}); got != 4 {
		t.Errorf("level %g above a smaller size", got)
	}
}

// A bucket never admits more than its size allows in any interval from its
// start, and after the wait that it names the same take succeeds.
func TestABucketKeepsItsBound(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		size := Size{Cap: float64(rapid.IntRange(1, 1000).Draw(t, "cap")), Rate: rapid.Float64Range(1e-9, 1e-3).Draw(t, "rate")}
		var b Bucket
		b.Set(size.Cap, 0)
		now, taken := int64(0), 0.0
		for _, n := range rapid.SliceOfN(rapid.Int64Range(1, 1200), 1, 50).Draw(t, "costs") {
			now += rapid.Int64Range(0, 1e9).Draw(t, "pause")
			if b.Take(now, n, size) {
				taken += float64(n)
			} else if wait := b.Wait(now, n, size); wait < math.MaxInt64 {
				now += int64(wait) + 1 // 1 ns for what rounding of the level may lose
				if !b.Take(now, n, size) {
					t.Fatalf("refused after its wait of %d", wait)
				}
				taken += float64(n)
			}
			if bound := size.Cap + size.Rate*float64(now); taken > bound*(1+1e-9) {
				t.Fatalf("took %g of %g", taken, bound)
			}
		}
	})
}
