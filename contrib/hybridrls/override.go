package hybridrls

import (
	"math"
	"strconv"
	"strings"
	"time"

	commonv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/common/ratelimit/v3"
	typev3 "github.com/envoyproxy/go-control-plane/envoy/type/v3"

	"github.com/hybridlimit/hybrid"
	"github.com/hybridlimit/hybrid/exact"
)

var unitPeriods = map[typev3.RateLimitUnit]time.Duration{
	typev3.RateLimitUnit_SECOND: time.Second,
	typev3.RateLimitUnit_MINUTE: time.Minute,
	typev3.RateLimitUnit_HOUR:   time.Hour,
	typev3.RateLimitUnit_DAY:    day,
	typev3.RateLimitUnit_MONTH:  month,
	typev3.RateLimitUnit_YEAR:   year,
}

// overrideKey is what a descriptor with a limit of its own is counted under: the
// limit and all entries. The limit is in the key, so that every server reads the
// same one from it, and remembers none. ok is false without a limit, or with one
// of an unknown unit.
func overrideKey(d *commonv3.RateLimitDescriptor) (key string, ok bool) {
	o := d.GetLimit()
	if _, known := unitPeriods[o.GetUnit()]; o == nil || !known {
		return "", false
	}
	var room [128]byte
	b := room[:0]
	for _, e := range d.GetEntries() {
		b = appendPart(b, e.GetKey(), false)
		b = appendPart(b, e.GetValue(), false)
	}
	return strconv.FormatUint(uint64(o.GetRequestsPerUnit()), 10) + "/" + strconv.Itoa(int(o.GetUnit())) + ";" + exact.CellKey(string(b)), true
}

// overrideLimit reads the limit from such a key.
func overrideLimit(key string, window bool) (hybrid.Limit, bool) {
	text, _, _ := strings.Cut(key, ";")
	count, unit, _ := strings.Cut(text, "/")
	n, err := strconv.ParseUint(count, 10, 32)
	u, err2 := strconv.ParseInt(unit, 10, 32)
	if err != nil || err2 != nil || n > math.MaxUint32 {
		return hybrid.Limit{}, false
	}
	period, known := unitPeriods[typev3.RateLimitUnit(u)]
	if window {
		return hybrid.Window(int64(n), period), known
	}
	return hybrid.Per(int64(n), period), known
}
