// Package hybridprom shows Prometheus what a node of package hybrid does:
//
//	node, err := hybrid.New(rdb, nil)
//	...
//	collector, err := hybridprom.New(node, nil)
//	...
//	prometheus.MustRegister(collector)
//	http.Handle("/metrics", promhttp.Handler())
//
// Requests pay nothing for it. The numbers are those of Node.Stats, pulled when a
// scrape asks for them, at most once per Options.MinInterval: a look walks over
// the keys that are in touch with Redis.
//
// No label ever holds a key. A limiter has 24 series, whether it limits one key or
// a million; the node has some forty, most of them buckets of its two histograms,
// and one for each cause of failures, 33 at most. The series of a limiter are gone
// when it is closed; one that is made again begins at 0.
//
// # Metrics
//
// Their names begin with Options.Namespace, "hybrid_" by default. Of limiters
// (label limiter):
//
//	decisions_total{path,result}       requests, but for those admitted from slices
//	slice_tokens_total                 tokens admitted from slices
//	shadowed_requests_total            denied, and allowed in shadow mode
//	blocked_requests_total             requests that waited for Redis
//	overshoot_ratio                    bound on what is admitted beyond the limit, now; in shadow mode as if enforced
//	operations_total                   accounts settled in Redis
//	operations_not_run_total           that Redis certainly did not execute
//	operations_unknown_total           that Redis may have executed
//	slice_granted_tokens_total         lent to this node
//	slice_returned_tokens_total        given back unused
//	slice_recalled_tokens_total        some of these, since another node needed them
//	slice_expired_tokens_total         lapsed with their leases
//	slices_dropped_total               reported when Redis had forgotten them
//	accounts_rebuilt_total             unreadable, and replaced
//	invalid_tiers_total                answers of LimitFor that were no limit
//	keys                               remembered now
//	waiters                            callers of Wait in line or waiting for their turn
//	fleet_nodes                        live nodes, as last heard
//	limiter_info{accuracy,on_failure,shadow}  settings; 1
//
// Of the node:
//
//	store_up                           0 while nobody waits for Redis
//	store_outages_total          times that this began
//	store_calls_total                  round trips with operations
//	store_call_duration_seconds        their time: a histogram
//	store_call_operations              operations in one: a histogram
//	store_sync_lag_seconds             since Redis last answered; grows without limiters
//	operation_failures_total{cause}    operations that failed, by the words of the log
//	recall_errors_total                failed exchanges of which keys are scarce
//	max_keys                           bound on the sum of keys
//	evictions_total                    keys forgotten because of it
//	poisoned_accounts_total            keys of another type where accounts belong
//	hooks_dropped_total                events that hooks were too slow for
//	logs_dropped_total                 lines that the Logger was too slow for
//
// A slice counts tokens and no requests: to count both would slow down the
// fastest path. Where each request costs one token, slice_tokens_total is the
// number of requests that slices admitted, and so this is the part that is denied:
//
//	  sum by (limiter) (rate(hybrid_decisions_total{result="denied"}[5m]))
//	/
//	  (
//	      sum by (limiter) (rate(hybrid_decisions_total[5m]))
//	    +
//	      sum by (limiter) (rate(hybrid_slice_tokens_total[5m]))
//	  )
//
// Of a limiter in shadow mode, which denies nobody, it is the part that would be:
// alerts.yml leaves those out. docs/operations.md has the field of Stats for each
// metric, and its name in hybridotel.
//
// # Several nodes
//
// A process with two nodes, on two Redis servers, gives their collectors
// different ConstLabels of the same names, say store="eu" and store="us". A
// second collector without is refused when it is registered.
//
// # Dashboard and alerts
//
// dashboard.json is a dashboard for Grafana, to be imported as it is: it asks for
// the data source. Each panel says what is normal. alerts.yml has alert rules for
// Prometheus, of what docs/operations.md says to watch; alerts_test.yml has their
// unit tests (promtool test rules alerts_test.yml). Both expect the default
// Namespace, and one scrape per instance.
//
// The program in demo shows all of it on a fleet that loses its Redis now and
// then. docs/images/hybridprom.png has ten minutes of it: the queries of the
// dashboard, as a Prometheus server drew them, with three outages.
package hybridprom
