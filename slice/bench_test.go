package slice

import (
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/puzpuzpuz/xsync/v3"
)

const benchKeys = 1 << 14

func benchTable() (*Table[*fake], []string) {
	tb, _ := fakeTable(benchKeys)
	keys := make([]string, benchKeys)
	for i := range keys {
		keys[i] = fmt.Sprintf("user-%08d", i)
		e, _, _ := tb.LoadOrMake(keys[i], func() *fake { return newFake(tb, keys[i]) })
		e.cell.renew(1, MaxSlice)
	}
	return tb, keys
}

func bareMap(keys []string) *xsync.MapOf[string, *atomic.Uint64] {
	m := xsync.NewMapOf[string, *atomic.Uint64]()
	for _, k := range keys {
		m.Store(k, new(atomic.Uint64))
	}
	return m
}

// measure returns the time per call of the fastest of several short runs: what
// else happens on the machine only ever adds.
func measure(f func(n int)) float64 {
	best := time.Duration(1 << 62)
	const n = 1 << 18
	for range 15 {
		start := time.Now()
		f(n)
		best = min(best, time.Since(start))
	}
	return float64(best) / n
}

// BenchmarkSliceAgainstFloor prints what a decision on a slice costs, as a
// multiple of what it cannot do without: a look-up in a bare xsync map and one
// compare-and-swap.
func BenchmarkSliceAgainstFloor(b *testing.B) {
	tb, keys := benchTable()
	bare := bareMap(keys)
	var dead Watermark
	for b.Loop() {
		slice := measure(func(n int) {
			for i := range n {
				e, _ := tb.Load(keys[i*7%benchKeys])
				e.cell.Take(1, &dead)
			}
		})
		floor := measure(func(n int) {
			for i := range n {
				w, _ := bare.Load(keys[i*7%benchKeys])
				v := w.Load()
				w.CompareAndSwap(v, v+1)
			}
		})
		b.ReportMetric(slice, "ns/take")
		b.ReportMetric(floor, "ns/floor")
		b.ReportMetric(slice/floor, "ratio")
	}
}

// BenchmarkContended prints the same for one hot key on all cores.
func BenchmarkContended(b *testing.B) {
	var dead Watermark
	c := cellOf(MaxSlice)
	b.Run("take", func(b *testing.B) {
		b.ReportAllocs()
		b.RunParallel(func(pb *testing.PB) {
			for pb.Next() {
				if _, ok := c.Take(1, &dead); !ok {
					c.renew(1, MaxSlice/2)
				}
			}
		})
	})
	b.Run("bare", func(b *testing.B) {
		var w atomic.Uint64
		b.RunParallel(func(pb *testing.PB) {
			for pb.Next() {
				for {
					if v := w.Load(); w.CompareAndSwap(v, v+1) {
						break
					}
				}
			}
		})
	})
}

// BenchmarkNewKey prints the longest that one of a million new keys waited.
func BenchmarkNewKey(b *testing.B) {
	const n = 1 << 20
	for b.Loop() {
		tb, _ := fakeTable(n)
		var worst time.Duration
		for i := range n {
			f := newFake(tb, fmt.Sprint(i))
			start := time.Now()
			tb.LoadOrMake(f.key, func() *fake { return f })
			worst = max(worst, time.Since(start))
		}
		b.ReportMetric(float64(worst)/1e6, "worst-ms")
	}
}

// BenchmarkEvict is a new key in a full table.
func BenchmarkEvict(b *testing.B) {
	tb, _ := fakeTable(1 << 14)
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		key := fmt.Sprint(i)
		tb.LoadOrMake(key, func() *fake { return newFake(tb, key) })
	}
}
