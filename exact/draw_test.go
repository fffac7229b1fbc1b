package exact

import (
	"time"

	"pgregory.net/rapid"
)

func drawPeriod(t *rapid.T) time.Duration {
	us := rapid.OneOf(
		rapid.SampledFrom([]int64{1, 500, 1_000_000, 60_000_000, 3_600_000_000, 86_400_000_000, 1 << 53}),
		rapid.Int64Range(1, 600_000_000), rapid.Int64Range(1, 1<<53),
	).Draw(t, "period")
	return time.Duration(us) * time.Microsecond
}
