package hybridrls

import (
	"math"
	"regexp"
	"strconv"
	"strings"
	"time"

	rlsv3 "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"

	"github.com/hybridlimit/hybrid"
)

var periods = map[string]time.Duration{
	"s": time.Second, "sec": time.Second, "second": time.Second,
	"min": time.Minute, "minute": time.Minute,
	"h": time.Hour, "hour": time.Hour,
	"d": day, "day": day,
	"w": week, "week": week,
}

// A month is 30 days and a year 365: limits are of lengths of time, not of the
// calendar.
const (
	day   = 24 * time.Hour
	week  = 7 * day
	month = 30 * day
	year  = 365 * day
)

const (
	mostCount      = 1 << 53
	shortestPeriod = time.Millisecond
	longestPeriod  = 10 * year
)

// parseLimit reads "100/min", "100/s burst 500", "1000/day window" and "unlimited".
func parseLimit(s string) (limit hybrid.Limit, unlimited bool, err error) {
	wrong := allowed("COUNT/PERIOD, COUNT/PERIOD burst COUNT, COUNT/PERIOD window, or unlimited; COUNT 0 to %d, PERIOD s, min, h, day, week or a duration from %v to %v",
		int64(mostCount), shortestPeriod, longestPeriod)
	words := strings.Fields(s)
	if len(words) == 1 && words[0] == "unlimited" {
		return limit, true, nil
	}
	if len(words) == 0 {
		return limit, false, wrong
	}
	count, period, ok := parseRate(words[0])
	limit = hybrid.Per(count, period)
	switch {
	case !ok:
		return limit, false, wrong
	case len(words) == 1:
	case len(words) == 2 && words[1] == "window":
		limit = hybrid.Window(count, period)
	case len(words) == 3 && words[1] == "burst":
		burst, ok := parseCount(words[2])
		if !ok {
			return limit, false, wrong
		}
		limit = limit.WithBurst(burst)
	default:
		return limit, false, wrong
	}
	if limit.Validate() != nil {
		return limit, false, wrong // a burst of 0 with a rate
	}
	return limit, false, nil
}

func parseRate(s string) (count int64, period time.Duration, ok bool) {
	number, name, _ := strings.Cut(s, "/")
	count, ok = parseCount(number)
	if !ok {
		return 0, 0, false
	}
	period, known := periods[name]
	if known {
		return count, period, true
	}
	period, err := time.ParseDuration(name)
	fits := period >= shortestPeriod && period <= longestPeriod && period%time.Microsecond == 0
	return count, period, err == nil && fits
}

// parseCount takes digits alone: no sign, no underscore.
func parseCount(s string) (int64, bool) {
	n, err := strconv.ParseUint(s, 10, 63)
	return int64(n), err == nil && n <= mostCount
}

var within = regexp.MustCompile(`^within\(([^,]+),([^,]+)\)$`)

func parseAccuracy(s string) (hybrid.Accuracy, error) {
	switch s {
	case "balanced":
		return hybrid.Balanced, nil
	case "strict":
		return hybrid.Strict, nil
	case "exact":
		return hybrid.Exact, nil
	}
	if m := within.FindStringSubmatch(strings.ReplaceAll(s, " ", "")); m != nil {
		over, okOver := parsePart(m[1])
		under, okUnder := parsePart(m[2])
		if okOver && okUnder {
			return hybrid.Within(over, under), nil
		}
	}
	return hybrid.Accuracy{}, allowed("balanced, strict, exact, or within(over, under) with both from 0 to 1")
}

func parsePart(s string) (float64, bool) {
	v, err := strconv.ParseFloat(s, 64)
	return v, err == nil && v >= 0 && v <= 1 // NaN is neither
}

func parsePolicy(s string) (hybrid.FailurePolicy, error) {
	switch s {
	case "local":
		return hybrid.FailLocal, nil
	case "open":
		return hybrid.FailOpen, nil
	case "closed":
		return hybrid.FailClosed, nil
	}
	return 0, allowed("local, open or closed")
}

// currentLimit is a limit as the protocol has it: of a length of time that has no
// unit there, the unit is unknown.
func currentLimit(name string, l hybrid.Limit) *rlsv3.RateLimitResponse_RateLimit {
	return &rlsv3.RateLimitResponse_RateLimit{Name: name, RequestsPerUnit: small(l.Count()), Unit: unitOf(l.Period())}
}

func unitOf(period time.Duration) rlsv3.RateLimitResponse_RateLimit_Unit {
	switch period {
	case time.Second:
		return rlsv3.RateLimitResponse_RateLimit_SECOND
	case time.Minute:
		return rlsv3.RateLimitResponse_RateLimit_MINUTE
	case time.Hour:
		return rlsv3.RateLimitResponse_RateLimit_HOUR
	case day:
		return rlsv3.RateLimitResponse_RateLimit_DAY
	case week:
		return rlsv3.RateLimitResponse_RateLimit_WEEK
	case month:
		return rlsv3.RateLimitResponse_RateLimit_MONTH
	case year:
		return rlsv3.RateLimitResponse_RateLimit_YEAR
	default:
		return rlsv3.RateLimitResponse_RateLimit_UNKNOWN
	}
}

// small is a count as the protocol can say it.
func small(n int64) uint32 { return uint32(min(max(n, 0), math.MaxUint32)) }
