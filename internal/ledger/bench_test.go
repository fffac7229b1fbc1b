package ledger_test

import (
	"testing"

	"github.com/hybridlimit/hybrid/internal/ledger"
	"github.com/hybridlimit/hybrid/slice"
)

const t0 = 29_933_000 * slice.Epoch // µs, the start of a lease epoch

// BenchmarkSettle is what a simulation does most: a need, and the renewal of a slice.
func BenchmarkSettle(b *testing.B) {
	rule := slice.Rule{Burst: 1000, Rate: 0.001}
	needs := []slice.Need{{Cost: 1, Count: 1}}
	b.Run("need", func(b *testing.B) {
		var a ledger.Account
		for i := range int64(b.N) {
			a.Settle(t0+1000*i, rule, slice.Usage{Needs: needs})
		}
	})
	b.Run("renewal", func(b *testing.B) {
		var a ledger.Account
		g, _ := a.Settle(t0, rule, slice.Usage{Want: 100, Least: 1, Unit: 1, Divisor: 2})
		held := g.Granted
		b.ReportAllocs()
		for i := range int64(b.N) {
			g, _ = a.Settle(t0+10_000*i, rule, slice.Usage{Tag: g.Tag, Spent: 10, Held: held - 10, Want: 10, Least: 1, Unit: 1, Divisor: 2})
			held += g.Granted - 10
		}
		if held < 50 {
			b.Fatal(held)
		}
	})
}
