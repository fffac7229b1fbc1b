package hybridprom

import "github.com/hybridlimit/hybrid"

var storeMetrics = []metric{
	{"store_up", gauge, nil,
		"1 while the node relies on Redis, 0 while nobody waits for it or for a part of it: the breaker is open.",
		ofNode(func(s *hybrid.Stats) int {
			if s.StoreDown {
				return 0
			}
			return 1
		})},
	{"store_outages_total", counter, nil,
		"Times that the node stopped waiting for Redis.",
		ofNode(func(s *hybrid.Stats) uint64 { return s.StoreDowns })},
	{"store_calls_total", counter, nil,
		"Calls to Redis that carried operations: round trips.",
		ofNode(func(s *hybrid.Stats) uint64 { return s.Calls })},
	{"store_sync_lag_seconds", gauge, nil,
		"Time since Redis last answered this node. About a second or less when all is well, whatever the traffic; it grows while there is no limiter.",
		ofNode(func(s *hybrid.Stats) float64 { return s.SyncLag.Seconds() })},
	{"operation_failures_total", counter, []string{"cause"},
		"Operations that Redis did not execute, or may not have, by the cause that the log names. A cause appears with its first failure.",
		func(s *snapshot, put put) {
			for cause, n := range s.stats.Failures {
				put(float64(n), labelOf(cause))
			}
		}},
	{"recall_errors_total", counter, nil,
		"Failed exchanges of which keys are scarce.",
		ofNode(func(s *hybrid.Stats) uint64 { return s.RecallErrors })},
}

var healthMetrics = []metric{
	{"poisoned_accounts_total", counter, nil,
		"Times that Redis refused one account alone: a key of another type is where it belongs.",
		ofNode(func(s *hybrid.Stats) uint64 { return s.Poisoned })},
	{"hooks_dropped_total", counter, nil,
		"Events that the hooks were too slow for.",
		ofNode(func(s *hybrid.Stats) uint64 { return s.HooksDropped })},
	{"logs_dropped_total", counter, nil,
		"Log lines that the Logger was too slow for, or failed at.",
		ofNode(func(s *hybrid.Stats) uint64 { return s.LogsDropped })},
}
