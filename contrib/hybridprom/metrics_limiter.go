package hybridprom

import (
	"strconv"

	"github.com/hybridlimit/hybrid"
)

var decisionMetrics = []metric{
	{"decisions_total", counter, []string{"limiter", "path", "result"},
		"Requests that were decided, but for those admitted from slices: these are counted in tokens alone, in slice_tokens_total. " +
			"Those denied by path exact include those that can never pass. In shadow mode the result is what it would have been.",
		decisions},
	{"slice_tokens_total", counter, byLimiter,
		"Tokens admitted from slices. Where each request costs one token, as many requests.",
		ofLimiters(func(l *hybrid.LimiterStats) uint64 { return l.SliceTokens })},
	{"shadowed_requests_total", counter, byLimiter,
		"Requests that were denied, and allowed only because the limiter is in shadow mode.",
		ofLimiters(func(l *hybrid.LimiterStats) uint64 { return l.Shadowed })},
	{"blocked_requests_total", counter, byLimiter,
		"Requests that waited for Redis.",
		ofLimiters(func(l *hybrid.LimiterStats) uint64 { return l.Blocked })},
	{"overshoot_ratio", gauge, byLimiter,
		"What the fleet may admit beyond the limit now, as a part of the limit. More in an outage; +Inf while the limiter fails open. " +
			"In shadow mode, which admits everything, the bound as if the limiter were enforced.",
		ofLimiters(func(l *hybrid.LimiterStats) float64 { return l.Overshoot })},
	{"limiter_info", gauge, []string{"limiter", "accuracy", "on_failure", "shadow"},
		"Settings of the limiter; always 1.",
		infos},
}

// decisions reads the counts of requests. Slices count tokens and no requests:
// to count both would slow down the path that is to be the fastest.
func decisions(s *snapshot, put put) {
	for label, l := range s.limiters {
		for _, d := range []struct {
			path   hybrid.Path
			result string
			count  uint64
		}{
			{hybrid.PathFloor, "allowed", l.FloorAllowed},
			{hybrid.PathExact, "allowed", l.ExactAllowed},
			{hybrid.PathExact, "denied", l.ExactDenied},
			{hybrid.PathMemo, "denied", l.MemoDenied},
			{hybrid.PathFallback, "allowed", l.FallbackAllowed},
			{hybrid.PathFallback, "denied", l.FallbackDenied},
		} {
			put(float64(d.count), label, d.path.String(), d.result)
		}
	}
}

func infos(s *snapshot, put put) {
	for _, l := range s.open {
		put(1, labelOf(l.Name()), l.Accuracy().String(), l.OnFailure().String(), strconv.FormatBool(l.Shadow()))
	}
}

var sliceMetrics = []metric{
	{"operations_total", counter, byLimiter,
		"Operations that Redis executed. One settles one account: what was used, what is needed, and the slice.",
		ofLimiters(func(l *hybrid.LimiterStats) uint64 { return l.Operations })},
	{"operations_not_run_total", counter, byLimiter,
		"Operations that Redis certainly did not execute.",
		ofLimiters(func(l *hybrid.LimiterStats) uint64 { return l.NotRun })},
	{"operations_unknown_total", counter, byLimiter,
		"Operations that Redis may have executed: the answer was lost or came too late.",
		ofLimiters(func(l *hybrid.LimiterStats) uint64 { return l.Unknown })},
	{"slice_granted_tokens_total", counter, byLimiter,
		"Tokens that Redis granted to slices of this node.",
		ofLimiters(func(l *hybrid.LimiterStats) uint64 { return l.Granted })},
	{"slice_returned_tokens_total", counter, byLimiter,
		"Tokens of slices that Redis has taken back unused.",
		ofLimiters(func(l *hybrid.LimiterStats) uint64 { return l.Returned })},
	{"slice_recalled_tokens_total", counter, byLimiter,
		"Of slice_returned_tokens_total, the tokens that another node needed.",
		ofLimiters(func(l *hybrid.LimiterStats) uint64 { return l.Recalled })},
	{"slice_expired_tokens_total", counter, byLimiter,
		"Tokens of slices that were not used when their leases ended, or were on their way back when a call was lost.",
		ofLimiters(func(l *hybrid.LimiterStats) uint64 { return l.Expired })},
	{"slices_dropped_total", counter, byLimiter,
		"Slices that Redis had forgotten when they were reported, and had no room for.",
		ofLimiters(func(l *hybrid.LimiterStats) uint64 { return l.Dropped })},
	{"accounts_rebuilt_total", counter, byLimiter,
		"Accounts in Redis that were unreadable, or far ahead of its clock, and were replaced.",
		ofLimiters(func(l *hybrid.LimiterStats) uint64 { return l.Rebuilt })},
	{"invalid_tiers_total", counter, byLimiter,
		"Answers of LimitFor that were no limit.",
		ofLimiters(func(l *hybrid.LimiterStats) uint64 { return l.InvalidTiers })},
}

var keyMetrics = []metric{
	{"keys", gauge, byLimiter,
		"Keys that the node remembers.",
		ofLimiters(func(l *hybrid.LimiterStats) int { return l.Keys })},
	{"waiters", gauge, byLimiter,
		"Callers of Wait that are in line or wait for their turn.",
		ofLimiters(func(l *hybrid.LimiterStats) int { return l.Waiters })},
	{"fleet_nodes", gauge, byLimiter,
		"Live nodes of the limiter, as this one last heard of Redis; 0 before that.",
		ofLimiters(func(l *hybrid.LimiterStats) int { return l.Fleet })},
	{"max_keys", gauge, nil,
		"Bound on the keys that the node remembers, of all limiters together.",
		ofNode(func(s *hybrid.Stats) int { return s.MaxKeys })},
	{"evictions_total", counter, nil,
		"Keys forgotten because of max_keys.",
		ofNode(func(s *hybrid.Stats) uint64 { return s.Evictions })},
}
