package hybridprom

import (
	"math"
	"testing"
	"time"

	"github.com/hybridlimit/hybrid"
	"github.com/hybridlimit/hybrid/internal/redistest"
)

// Redis stands still for a while. The series show it: the breaker, who fails open,
// what the policies decided, and the causes; and then that it is over.
func TestOutageIsSeen(t *testing.T) {
	server := redistest.Start(t)
	node := newNode(t, server.Addr, func(o *hybrid.Options) { o.StoreTimeout = 100 * time.Millisecond })
	open := newTally(newLimiter(t, node, "search", hybrid.PerMinute(100), &hybrid.LimiterOptions{Accuracy: hybrid.Exact, OnFailure: hybrid.FailOpen}))
	local := newTally(newLimiter(t, node, "api", hybrid.PerMinute(100), &hybrid.LimiterOptions{Accuracy: hybrid.Exact}))
	closed := newTally(newLimiter(t, node, "login", hybrid.PerMinute(100), &hybrid.LimiterOptions{Accuracy: hybrid.Exact, OnFailure: hybrid.FailClosed}))
	tallies := []*tally{open, local, closed}
	askAll := func() {
		for _, c := range tallies {
			c.ask(t, "k", 1)
		}
	}
	metrics := fresh(t, node)

	redistest.Eventually(t, "the node has heard of Redis", func() bool {
		return metrics.scrape()[`hybrid_fleet_nodes{limiter="api"}`] == 1
	})
	askAll()
	well := metrics.scrape()
	well.want(t, "hybrid_store_up", 1)
	opens := well["hybrid_store_outages_total"]

	if err := server.Stop(); err != nil {
		t.Fatal(err)
	}
	redistest.Eventually(t, "the breaker opens", func() bool {
		askAll()
		return metrics.scrape()["hybrid_store_up"] == 0
	})
	for range 50 {
		askAll()
	}
	out := metrics.scrape()
	for _, c := range tallies {
		c.check(t, out)
	}
	if got := out["hybrid_store_outages_total"]; got <= opens {
		t.Errorf("the breaker has opened %v times, %v before", got, opens)
	}
	out.want(t, `hybrid_overshoot_ratio{limiter="search"}`, math.Inf(1))
	out.want(t, `hybrid_overshoot_ratio{limiter="api"}`, 1)
	out.want(t, `hybrid_overshoot_ratio{limiter="login"}`, 0)
	if allowed, denied := out.sum("hybrid_decisions_total", `limiter="search"`, `path="fallback"`, `result="allowed"`),
		out.sum("hybrid_decisions_total", `limiter="login"`, `path="fallback"`, `result="denied"`); allowed < 50 || denied < 50 {
		t.Errorf("FailOpen admitted %v, FailClosed denied %v", allowed, denied)
	}
	redistest.Eventually(t, "the lag grows", func() bool { return metrics.scrape()["hybrid_store_sync_lag_seconds"] > 1.5 })

	if err := server.Continue(); err != nil {
		t.Fatal(err)
	}
	redistest.Eventually(t, "the node relies on Redis again", func() bool {
		s := metrics.scrape()
		return s["hybrid_store_up"] == 1 && s[`hybrid_overshoot_ratio{limiter="search"}`] == 0 && s["hybrid_store_sync_lag_seconds"] < 1.5
	})
	after := metrics.scrape()
	failed, lost := after.sum("hybrid_operation_failures_total"), after.sum("hybrid_operations_not_run_total")+after.sum("hybrid_operations_unknown_total")
	if failed < 1 || failed != lost || after.sum("hybrid_operation_failures_total", `cause="timeout"`) < 1 {
		t.Errorf("%v operations failed by cause, %v by outcome: %v", failed, lost, after)
	}
}
