package hybridotel

import (
	"go.opentelemetry.io/otel/attribute"

	"github.com/hybridlimit/hybrid"
)

type (
	limiterStats = hybrid.LimiterStats
	nodeStats    = hybrid.Stats
)

// decided are the requests of one result and one path.
func decided(allowed bool, path hybrid.Path, count func(*limiterStats) int64) whole[limiterStats] {
	return whole[limiterStats]{
		counter, "requests", "{request}",
		"Requests decided. Those admitted from slices are counted in tokens only: slice.tokens. Those denied by path exact include those that can never pass.",
		[]attribute.KeyValue{resultAttribute(allowed), pathAttribute(path)}, count,
	}
}

// failed are the operations of one outcome.
func failed(outcome string, count func(*limiterStats) int64) whole[limiterStats] {
	return whole[limiterStats]{
		counter, "failed_operations", "{operation}",
		"Operations that Redis certainly did not execute (not_run), or may have executed (unknown). operation.failures has the same ones by cause.",
		[]attribute.KeyValue{keyOutcome.String(outcome)}, count,
	}
}

var limiterWholes = []whole[limiterStats]{
	decided(true, hybrid.PathFloor, func(s *limiterStats) int64 { return int64(s.FloorAllowed) }),
	decided(true, hybrid.PathExact, func(s *limiterStats) int64 { return int64(s.ExactAllowed) }),
	decided(false, hybrid.PathExact, func(s *limiterStats) int64 { return int64(s.ExactDenied) }),
	decided(false, hybrid.PathMemo, func(s *limiterStats) int64 { return int64(s.MemoDenied) }),
	decided(true, hybrid.PathFallback, func(s *limiterStats) int64 { return int64(s.FallbackAllowed) }),
	decided(false, hybrid.PathFallback, func(s *limiterStats) int64 { return int64(s.FallbackDenied) }),

	{counter, "slice.tokens", "{token}", "Tokens admitted from slices, in memory.",
		nil, func(s *limiterStats) int64 { return int64(s.SliceTokens) }},
	{counter, "slice.granted_tokens", "{token}", "Tokens that Redis granted to slices.",
		nil, func(s *limiterStats) int64 { return int64(s.Granted) }},
	{counter, "slice.returned_tokens", "{token}", "Tokens of slices given back to Redis unused.",
		nil, func(s *limiterStats) int64 { return int64(s.Returned) }},
	{counter, "slice.recalled_tokens", "{token}", "Tokens given back because another node needed them: some of slice.returned_tokens.",
		nil, func(s *limiterStats) int64 { return int64(s.Recalled) }},
	{counter, "slice.expired_tokens", "{token}", "Tokens of slices that were not used when their leases ended, or were on their way back when a call was lost.",
		nil, func(s *limiterStats) int64 { return int64(s.Expired) }},
	{counter, "dropped_slices", "{slice}", "Slices that Redis had forgotten when they were reported, and had no room for.",
		nil, func(s *limiterStats) int64 { return int64(s.Dropped) }},

	{counter, "blocked_requests", "{request}", "Requests that waited for Redis.",
		nil, func(s *limiterStats) int64 { return int64(s.Blocked) }},
	{counter, "shadowed_requests", "{request}", "Requests denied, and allowed in shadow mode.",
		nil, func(s *limiterStats) int64 { return int64(s.Shadowed) }},
	{counter, "operations", "{operation}", "Accounts settled in Redis.",
		nil, func(s *limiterStats) int64 { return int64(s.Operations) }},
	failed("not_run", func(s *limiterStats) int64 { return int64(s.NotRun) }),
	failed("unknown", func(s *limiterStats) int64 { return int64(s.Unknown) }),
	{counter, "rebuilt_accounts", "{account}", "Accounts in Redis that were unreadable, or far ahead of its clock, and were replaced.",
		nil, func(s *limiterStats) int64 { return int64(s.Rebuilt) }},
	{counter, "invalid_tiers", "{tier}", "Answers of LimitFor that were no limit.",
		nil, func(s *limiterStats) int64 { return int64(s.InvalidTiers) }},

	{upDown, "key.count", "{key}", "Keys remembered now.",
		nil, func(s *limiterStats) int64 { return int64(s.Keys) }},
	{upDown, "waiter.count", "{caller}", "Callers of Wait that are in line or wait for their turn.",
		nil, func(s *limiterStats) int64 { return int64(s.Waiters) }},
	{gauge, "fleet.size", "{node}", "Live nodes, as last heard of Redis; 0 before that.",
		nil, func(s *limiterStats) int64 { return int64(s.Fleet) }},
}

var limiterParts = []part[limiterStats]{
	{"overshoot", "1", "What the fleet may admit beyond the limit now, as a part of it; more in an outage. In shadow mode, which admits everything, as if the limiter were enforced.",
		func(s *limiterStats) float64 { return s.Overshoot }},
}

var nodeWholes = []whole[nodeStats]{
	{counter, "store.calls", "{call}", "Calls to Redis that carried operations.",
		nil, func(s *nodeStats) int64 { return int64(s.Calls) }},
	{counter, "store.outages", "{outage}", "How often the node stopped waiting for Redis, or for a part of it.",
		nil, func(s *nodeStats) int64 { return int64(s.StoreDowns) }},
	{upDown, "store.down", "{node}", "1 while nobody waits for Redis, or for a part of it; 0 when all is well.",
		nil, func(s *nodeStats) int64 { return oneIf(s.StoreDown) }},
	{counter, "poisoned_accounts", "{account}", "Times that Redis refused one account alone: a key of another type is where it belongs.",
		nil, func(s *nodeStats) int64 { return int64(s.Poisoned) }},
	{counter, "recall.errors", "{error}", "Failed exchanges of which keys are scarce.",
		nil, func(s *nodeStats) int64 { return int64(s.RecallErrors) }},
	{upDown, "key.limit", "{key}", "Keys that the node remembers at most.",
		nil, func(s *nodeStats) int64 { return int64(s.MaxKeys) }},
	{counter, "key.evictions", "{key}", "Keys forgotten because there were too many.",
		nil, func(s *nodeStats) int64 { return int64(s.Evictions) }},
	{counter, "hook.dropped_events", "{event}", "Events that the hooks were too slow for.",
		nil, func(s *nodeStats) int64 { return int64(s.HooksDropped) }},
	{counter, "log.dropped_lines", "{line}", "Log lines that the logger was too slow for, or failed at.",
		nil, func(s *nodeStats) int64 { return int64(s.LogsDropped) }},
}

var nodeParts = []part[nodeStats]{
	{"store.sync_lag", "s", "Since Redis last answered this node; about a second or less when all is well. It grows while there is no limiter.",
		func(s *nodeStats) float64 { return s.SyncLag.Seconds() }},
}

func oneIf(yes bool) int64 {
	if yes {
		return 1
	}
	return 0
}
