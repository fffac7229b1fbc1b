package debugui

import (
	"fmt"
	"math"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/hybridlimit/hybrid"
)

var noon = time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)

// looked makes two looks, 50 s apart, at a node with a limiter "api" that decided
// 10,000 requests in between; change is what else happened.
func looked(change func(st *hybrid.Stats, api *hybrid.LimiterStats, info *limiterInfo)) history {
	from := sample{at: noon, stats: hybrid.Stats{MaxKeys: 1000, Limiters: map[string]hybrid.LimiterStats{"api": {Fleet: 3}}}}
	from.limiters = []limiterInfo{{name: "api", limit: hybrid.PerMinute(600), onFailure: hybrid.FailLocal}}
	to := from
	to.at = noon.Add(50 * time.Second)
	api, info := hybrid.LimiterStats{SliceTokens: 9500, MemoDenied: 500, Operations: 400, Fleet: 3, Overshoot: 0.1}, from.limiters[0]
	to.stats.SyncLag = 100 * time.Millisecond
	if change != nil {
		change(&to.stats, &api, &info)
	}
	to.stats.Limiters = map[string]hybrid.LimiterStats{"api": api}
	to.limiters = []limiterInfo{info}
	to.stats.Total.Keys = api.Keys
	return history{}.with(from, noon).with(to, noon)
}

func down(at time.Time, cause string) hybrid.StoreEvent {
	return hybrid.StoreEvent{Down: true, Cause: cause, At: at}
}

func up(at time.Time) hybrid.StoreEvent { return hybrid.StoreEvent{At: at} }

// The first line says in words what is the matter, and only what is the matter.
func TestWhatAnOperatorReadsFirst(t *testing.T) {
	for name, c := range map[string]struct {
		change func(st *hybrid.Stats, api *hybrid.LimiterStats, info *limiterInfo)
		level  string
		want   string // in the headline
		helps  string // in the advice
	}{
		"nothing": {nil, levelOK, "All is well", ""},
		"late answers": {func(st *hybrid.Stats, _ *hybrid.LimiterStats, _ *limiterInfo) { st.SyncLag = 7 * time.Second },
			levelWarn, "Redis last answered this node 7 s ago", "Redis refuses those of this node, and the log says why"},
		"a late answer": {func(st *hybrid.Stats, _ *hybrid.LimiterStats, _ *limiterInfo) { st.SyncLag = 5 * time.Second }, levelOK, "All is well", ""},
		"single failures": {func(st *hybrid.Stats, api *hybrid.LimiterStats, _ *limiterInfo) {
			api.FallbackAllowed, st.Failures = 300, map[string]uint64{"timeout": 300}
		}, levelWarn, "2.9 % of requests were judged by the failure policy", "Causes: timeout (300)."},
		"a few failures": {func(st *hybrid.Stats, api *hybrid.LimiterStats, _ *limiterInfo) { api.FallbackAllowed = 9 }, levelOK, "All is well", ""},
		"lost replies": {func(st *hybrid.Stats, api *hybrid.LimiterStats, _ *limiterInfo) { api.Unknown = 12 },
			levelWarn, "12 operations have an unknown outcome", "ReadTimeout"},
		"refused": {func(st *hybrid.Stats, api *hybrid.LimiterStats, _ *limiterInfo) {
			api.NotRun, st.Failures = 40, map[string]uint64{"reply OOM": 40, "timeout": 0}
		}, levelWarn, "Redis did not execute 40 operations", "Causes: reply OOM (40)."},
		"no marks":  {func(st *hybrid.Stats, _ *hybrid.LimiterStats, _ *limiterInfo) { st.RecallErrors = 1 }, levelWarn, "which keys are scarce", "sorted sets"},
		"poisoned":  {func(st *hybrid.Stats, _ *hybrid.LimiterStats, _ *limiterInfo) { st.Poisoned = 3 }, levelWarn, "Redis refuses single accounts", "Another program"},
		"rebuilt":   {func(_ *hybrid.Stats, api *hybrid.LimiterStats, _ *limiterInfo) { api.Rebuilt = 1 }, levelWarn, "1 accounts in Redis could not be read", "Another program"},
		"dropped":   {func(_ *hybrid.Stats, api *hybrid.LimiterStats, _ *limiterInfo) { api.Dropped = 5 }, levelWarn, "forgotten 5 slices", "lost data"},
		"tiers":     {func(_ *hybrid.Stats, api *hybrid.LimiterStats, _ *limiterInfo) { api.InvalidTiers = 2 }, levelWarn, "LimitFor gave no valid limit 2 times", "own limit"},
		"slow hook": {func(st *hybrid.Stats, _ *hybrid.LimiterStats, _ *limiterInfo) { st.HooksDropped = 1 }, levelWarn, "A hook is too slow", "do not notice"},
		"slow log":  {func(st *hybrid.Stats, _ *hybrid.LimiterStats, _ *limiterInfo) { st.LogsDropped = 1 }, levelWarn, "The log handler is too slow", "do not notice"},
		"flapping": {func(st *hybrid.Stats, _ *hybrid.LimiterStats, _ *limiterInfo) {
			st.StoreEvents = flaps(11)
		}, levelWarn, "Redis went away 11 times in ten minutes", "StoreTimeout"},
		"down": {func(st *hybrid.Stats, _ *hybrid.LimiterStats, _ *limiterInfo) {
			st.StoreDown, st.StoreEvents = true, []hybrid.StoreEvent{down(noon.Add(8*time.Second), "no connection")}
		}, levelBad, "Redis does not answer: no connection", "Since 12:00:08 UTC, for 42 s."},
		"down and more": {func(st *hybrid.Stats, api *hybrid.LimiterStats, _ *limiterInfo) {
			st.StoreDown, st.Evictions, api.NotRun = true, 500, 4000
		}, levelBad, "does not answer", "Mend Redis"},
	} {
		v := judge(looked(c.change))
		if v.Level != c.level || !strings.Contains(v.Headline, c.want) || !strings.Contains(v.Advice, c.helps) {
			t.Errorf("%s: %+v", name, v)
		}
		if v.Level == levelOK && len(v.Also) > 0 || v.Level == levelBad != v.Down {
			t.Errorf("%s: %+v", name, v)
		}
	}
}

// flaps are outages of a second that began ten seconds apart, the last in time.
func flaps(times int) (events []hybrid.StoreEvent) {
	for i := range times {
		at := noon.Add(time.Duration(10*(i-times)-20) * time.Second)
		events = append(events, down(at, "timeout"), up(at.Add(time.Second)))
	}
	return events
}

// Ten in ten minutes are what the alert bears with, and one that goes on is one of them.
func TestFlappingIsWhatTheAlertSays(t *testing.T) {
	for n, want := range map[int]bool{10: false, 11: true, 16: true} {
		for _, lasts := range []bool{false, true} {
			v := judge(looked(func(st *hybrid.Stats, _ *hybrid.LimiterStats, _ *limiterInfo) {
				if st.StoreEvents = flaps(n); lasts {
					st.StoreDown, st.StoreEvents = true, st.StoreEvents[:2*n-1]
				}
			}))
			said := fmt.Sprintf("Redis went away %d times in ten minutes", n)
			if got := v.Headline == said || slices.ContainsFunc(v.Also, func(f finding) bool { return f.Text == said }); got != want || lasts != v.Down {
				t.Errorf("%d outages, the last goes on: %t: %+v", n, lasts, v)
			}
		}
	}
}

// The page and the alerts agree where trouble begins.
func TestThresholdsAreThoseOfTheAlerts(t *testing.T) {
	rules, err := os.ReadFile("../contrib/hybridprom/alerts.yml")
	if err != nil {
		t.Fatal(err)
	}
	for name, value := range map[string]float64{
		`hybrid_store_sync_lag_seconds > (\S+)`: lagLimit.Seconds(), `store_outages_total\[10m\]\) > (\S+)`: flappingTimes,
		`hybrid_max_keys > (\S+)`: keysPart, `(?s)alert: HybridFallbackWhileStoreUp.*?\n +> (\S+)`: fallbackPart,
		`(?s)alert: HybridStoreErrors.*?\n +> (\S+)`: lostPart, `(?s)alert: HybridSlicesDropped.*?\n +> (\S+)`: lostPart,
		`(?s)alert: HybridRequestsWait.*?\n +> (\S+)`: blockedPart, `hybrid_operations_unknown_total\[5m\]\)\) \* 60 > (\S+)`: lostReplies,
	} {
		m := regexp.MustCompile(name).FindSubmatch(rules)
		if m == nil || string(m[1]) != fmt.Sprint(value) {
			t.Errorf("%s: the alert has %q, the page %v", name, m, value)
		}
	}
}

// The counters of a process that has been through much say nothing of now.
func TestOldTroubleIsNoNews(t *testing.T) {
	h := looked(nil)
	old := hybrid.LimiterStats{FallbackAllowed: 1e6, Unknown: 1e6, NotRun: 1e6, Dropped: 1e6, Rebuilt: 1e6, InvalidTiers: 1e6, Fleet: 3}
	for i := range h {
		st := h[i].stats.Limiters["api"]
		old.SliceTokens = st.SliceTokens
		h[i].stats.Limiters["api"] = old
		h[i].stats.Evictions, h[i].stats.Poisoned, h[i].stats.RecallErrors, h[i].stats.LogsDropped, h[i].stats.StoreDowns = 99, 99, 99, 99, 99
		h[i].stats.StoreEvents = []hybrid.StoreEvent{down(noon.Add(-time.Hour), "timeout"), up(noon.Add(-time.Hour + time.Second))}
	}
	h = history{}.with(h[0], noon).with(h[1], noon)
	if v := judge(h); v.Level != levelOK || len(v.Also) != 0 {
		t.Errorf("%+v", v)
	}
	if v := judge(h[1:]); v.Level != levelOK || len(v.Also) != 0 || !strings.HasPrefix(v.Summary, "The first look") {
		t.Errorf("at the first look: %+v", v)
	}
}

func TestNotesDoNotAlarm(t *testing.T) {
	v := judge(looked(func(st *hybrid.Stats, api *hybrid.LimiterStats, info *limiterInfo) {
		info.shadow, api.Keys, api.Blocked, api.FallbackDenied = true, 820, 900, 200
		st.StoreEvents = []hybrid.StoreEvent{down(noon.Add(10*time.Second), "timeout"), up(noon.Add(22 * time.Second))}
	}))
	if v.Level != levelOK || v.Headline != "All is well" {
		t.Errorf("%+v", v)
	}
	for _, want := range []string{"Redis was away for 12 s, until 12:00:22 UTC, 28 s ago: timeout", "82 % of as many keys", "shadow mode", "wait for Redis"} {
		find(t, v.Also, want, func(f finding) bool { return f.Level == levelNote && strings.Contains(f.Text, want) })
	}
}

// Keys that are forgotten are a remark, which names what it costs in an outage.
func TestForgottenKeysAreARemark(t *testing.T) {
	for keys, want := range map[int]string{800: "", 820: "82 % of as many keys", 1000: "forgets keys, 10/s: more are in use than MaxKeys, 1,000"} {
		v := judge(looked(func(st *hybrid.Stats, api *hybrid.LimiterStats, _ *limiterInfo) {
			if api.Keys = keys; keys == st.MaxKeys {
				st.Evictions = 500
			}
		}))
		if v.Headline != "All is well" || len(v.Also) != min(len(want), 1) {
			t.Errorf("%d keys: %+v", keys, v)
			continue
		}
		for _, f := range v.Also {
			if f.Level != levelNote || !strings.Contains(f.Text, want) || !strings.Contains(f.Do, "Limits hold, but for a key that is forgotten in an outage") {
				t.Errorf("%d keys: %+v", keys, f)
			}
		}
	}
}

func TestExactLimitersWaitByDesign(t *testing.T) {
	v := judge(looked(func(_ *hybrid.Stats, api *hybrid.LimiterStats, info *limiterInfo) {
		info.accuracy, api.Blocked = hybrid.Exact, 10_000
	}))
	if len(v.Also) != 0 {
		t.Errorf("%+v", v)
	}
}

// While Redis is away, each limiter says what its callers get.
func TestOutageSaysWhatCallersGet(t *testing.T) {
	h := looked(func(st *hybrid.Stats, _ *hybrid.LimiterStats, _ *limiterInfo) { st.StoreDown = true })
	last := h.last()
	last.limiters = []limiterInfo{
		{name: "api", onFailure: hybrid.FailLocal}, {name: "alone", onFailure: hybrid.FailLocal}, {name: "search", onFailure: hybrid.FailOpen},
		{name: "login", onFailure: hybrid.FailClosed}, {name: "trial", onFailure: hybrid.FailClosed, shadow: true},
	}
	v := judge(h)
	for limiter, want := range map[string]string{
		"api": "each server admits its fair share of the limit (3 servers were last heard of)", "alone": "each server admits its fair share of the limit",
		"search": "then everything is admitted, without limit", "login": "then everything is denied", "trial": "everything is admitted: shadow mode",
	} {
		c := find(t, v.Callers, limiter, func(c caller) bool { return c.Limiter == limiter })
		if !strings.HasSuffix(c.Text, want) {
			t.Errorf("%s: %+v, want %q", limiter, c, want)
		}
	}
}

// The waits of before an outage are no news in it: the page says that nobody waits.
func TestNobodyWaitsInAnOutage(t *testing.T) {
	v := judge(looked(func(st *hybrid.Stats, api *hybrid.LimiterStats, _ *limiterInfo) {
		st.StoreDown, api.Blocked = true, 8500
	}))
	if !strings.Contains(v.Advice, "No request waits for it") || len(v.Also) != 0 {
		t.Errorf("%+v", v)
	}
}

// An operator with one server is not told of a Cluster, where the cause tells. Else it
// is the last thing that is said, and with an if.
func TestOutageOfAPartIsSaidWhereItMayBeOne(t *testing.T) {
	const other, cluster, maybe = "Keys of other shards are not affected.", "Keys in parts of the Cluster that answer are not affected.",
		"If Redis is a Cluster or a Ring, it may be one part of it: then the keys of the others are not affected."
	for cause, want := range map[string]string{
		"no connection": maybe, "timeout": maybe, "": maybe, "a shard of the ring is down": other, "reply CLUSTERDOWN": cluster, "reply MOVED": cluster,
		"no node of the cluster is reachable": "the node notices by itself.", "all shards of the ring are down": "the node notices by itself.",
		"no sentinel is reachable": "the node notices by itself.",
	} {
		v := judge(looked(func(st *hybrid.Stats, _ *hybrid.LimiterStats, _ *limiterInfo) {
			st.StoreDown, st.StoreEvents = true, []hybrid.StoreEvent{down(noon, cause)}
		}))
		if !strings.HasSuffix(v.Advice, want) {
			t.Errorf("%q: %s, want %s at its end", cause, v.Advice, want)
		}
	}
}

func TestUnregisteredLimiterIsFound(t *testing.T) {
	h := looked(func(_ *hybrid.Stats, api *hybrid.LimiterStats, _ *limiterInfo) { api.Fleet = 0 })
	if v := judge(h); v.Level != levelOK {
		t.Errorf("a limiter that was just made: %+v", v)
	}
	h[0].stats.Limiters["api"] = hybrid.LimiterStats{}
	if v := judge(h); v.Level != levelWarn || v.Headline != "api does not know its fleet" {
		t.Errorf("%+v", v)
	}
}

func TestBoundInWords(t *testing.T) {
	for _, c := range []struct {
		overshoot, over float64
		want            string
	}{
		{0, 0, "never above the limit"}, {0.1, 0.1, "at most 10 % above the limit"}, {1.1, 0.1, "at most 110 % above: one more burst, Redis is away"},
		{1, 0, "at most 100 % above: one more burst, Redis is away"}, {math.Inf(1), 0.1, "no bound while Redis is away"}, {1, 1, "at most 100 % above the limit"},
	} {
		if got := boundWords(c.overshoot, c.over); got != c.want {
			t.Errorf("%v of %v: %q, want %q", c.overshoot, c.over, got, c.want)
		}
	}
}

func TestLimitsInWords(t *testing.T) {
	for want, l := range map[string]hybrid.Limit{
		"1,000 per minute": hybrid.PerMinute(1000), "5 per second, burst 20": hybrid.PerSecond(5).WithBurst(20), "10,000 per day": hybrid.PerDay(10_000),
		"100 per hour, in fixed windows": hybrid.Window(100, time.Hour), "3 per 1 min 30 s": hybrid.Per(3, 90*time.Second), "nothing: a limit of 0": hybrid.PerSecond(0),
	} {
		if got := limitWords(l); got != want {
			t.Errorf("%v is %q, want %q", l, got, want)
		}
	}
}
