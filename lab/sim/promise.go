package sim

import (
	"math"

	"github.com/hybridlimit/hybrid"
	"github.com/hybridlimit/hybrid/internal/oracle"
)

func oracleOf(l hybrid.Limit) oracle.Limit { return promise(l, 0, 0) }

// promise is what a limit promises: (1+over) times the limit, and one burst (or
// quota) more for each time that the store lost what it had acknowledged, or was
// away and the failure policy admitted.
//
// The burst more is allowed in every interval, though only those that touch the
// loss may hold it: so a run with losses is judged more mildly than promised.
func promise(l hybrid.Limit, over float64, losses int) oracle.Limit {
	burst := l.Burst()
	if losses > 0 { // Over multiplies all of it
		burst = int64(math.Ceil(float64(burst) * (1 + float64(losses)/(1+over))))
	}
	if l.Windowed() {
		return oracle.NewWindow(burst, l.Period()).Over(over)
	}
	return oracle.New(l.Count(), l.Period(), burst).Over(over)
}
