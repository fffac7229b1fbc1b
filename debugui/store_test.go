package debugui

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/hybridlimit/hybrid"
)

// An outage from its onset to its end, as a viewer sees it.
func TestOutageIsShownAndItsEnd(t *testing.T) {
	inBubble(t, func(w *world) {
		h := w.handler(nil)
		search := w.limiter("search", hybrid.PerHour(5), &hybrid.LimiterOptions{Accuracy: hybrid.Strict, OnFailure: hybrid.FailOpen})
		login := w.limiter("login", hybrid.PerHour(5), &hybrid.LimiterOptions{Accuracy: hybrid.Strict, OnFailure: hybrid.FailClosed})
		users := 0
		traffic := func(seconds int) report { // each user is new, so each needs Redis
			for range 10 * seconds {
				users++
				use(t, search, fmt.Sprint("user-", users), 1)
				use(t, login, fmt.Sprint("user-", users), 1)
				advance(100)
			}
			return reported(t, h)
		}
		if r := traffic(5); r.Verdict.Level != levelOK || r.Store.Down || !r.Store.Quiet || !r.Store.Unfailed {
			t.Fatalf("before it: %+v", r.Verdict)
		}
		w.breakRedis()
		r := traffic(10)
		if r.Verdict.Level != levelBad || !strings.HasSuffix(r.Verdict.Headline, "reply LOADING") || r.Store.State != "does not answer" || r.Store.SyncLag.Value < 9 {
			t.Fatalf("in it: %+v, %+v", r.Verdict, r.Store)
		}
		if o := r.Store.Outages; len(o) != 1 || o[0].State != "down" || o[0].Ended != nil || o[0].Took.Value < 8 || o[0].To != "lasts" {
			t.Errorf("the outages are %+v", o)
		}
		if f := r.Store.Failures; len(f) == 0 || f[0].Cause != "reply LOADING" || f[0].Recent.Value < 1 {
			t.Errorf("the failures are %+v", f)
		}
		for _, l := range r.Limiters {
			fallback := find(t, l.Paths, "fallback", func(p pathReport) bool { return p.Path == "fallback" })
			if open := l.Name == "search"; open != (fallback.Admitted.Value > 5) || open == (fallback.Denied.Value > 1) || open != (l.Bound == "no bound while Redis is away") {
				t.Errorf("%s: %v admitted, %v denied, %s", l.Name, fallback.Admitted.Value, fallback.Denied.Value, l.Bound)
			}
		}
		w.mendRedis()
		r = traffic(5)
		if r.Verdict.Level != levelOK || r.Store.Down || len(r.Verdict.Also) == 0 || !strings.Contains(r.Verdict.Also[0].Text, "Redis was away for") {
			t.Errorf("after it: %+v", r.Verdict)
		}
		if o := r.Store.Outages; len(o) != 1 || o[0].State != "over" || o[0].Ended == nil || o[0].Took.Value < 8 || o[0].Took.Value > 12 {
			t.Errorf("the outages are %+v", o)
		}
	})
}

// A call carries whole operations, one at least: so do 99 of 100 calls.
func TestSizesAreWholeNumbers(t *testing.T) {
	for name, c := range map[string]struct {
		sizes         map[int]int // calls by size
		p50, p90, p99 number
	}{
		"one each":         {map[int]int{1: 100}, 1, 1, 1},
		"a single call":    {map[int]int{1: 1}, 1, 1, 1},
		"some of two":      {map[int]int{1: 30, 2: 70}, 2, 2, 2},
		"all of eight":     {map[int]int{8: 100}, 8, 8, 8},
		"all of seven":     {map[int]int{7: 100}, 7, 8, 8},
		"a few large ones": {map[int]int{1: 800, 64: 200}, 1, 48, 63},
	} {
		h := hybrid.Histogram{Bounds: []float64{1, 2, 4, 8, 16, 32, 64}, Counts: make([]uint64, 8)}
		for size, calls := range c.sizes {
			i, _ := slices.BinarySearch(h.Bounds, float64(size))
			h.Counts[i] += uint64(calls)
			h.Sum += float64(size * calls)
		}
		s := wholeSpreadOf(h)
		if s.P50.Value != c.p50 || s.P90.Value != c.p90 || s.P99.Value != c.p99 || s.P99.Text != countText(float64(c.p99)) {
			t.Errorf("%s: %+v, want %v, %v and %v", name, s, c.p50, c.p90, c.p99)
		}
	}
	if s := wholeSpreadOf(hybrid.Histogram{}); s.P50.Text != none || s.P99.Text != none {
		t.Errorf("without calls: %+v", s)
	}
}

func TestOutagesArePaired(t *testing.T) {
	at := func(s int) time.Time { return noon.Add(time.Duration(s) * time.Second) }
	list := outagesOf([]hybrid.StoreEvent{
		up(at(1)), // its beginning is not remembered any more
		down(at(10), "timeout"), up(at(12)),
		down(at(20), ""), // what it means is being found out
	}, at(50))
	if len(list) != 3 {
		t.Fatalf("%+v", list)
	}
	if o := list[0]; o.Ended != nil || o.Took.Value != 30 || o.Cause != "unknown" || o.State != "down" {
		t.Errorf("that lasts: %+v", o)
	}
	if o := list[1]; o.Took.Value != 2 || o.Cause != "timeout" || o.From != "12:00:10 UTC" || o.To != "12:00:12 UTC" || o.Ago != "38 s ago" {
		t.Errorf("that is over: %+v", o)
	}
	if o := list[2]; o.Began != nil || o.From != "before that" || o.Took.Text != none || o.Cause != "forgotten" {
		t.Errorf("whose beginning is forgotten: %+v", o)
	}
	ids := map[string]bool{}
	for _, o := range list {
		ids[o.ID] = true
	}
	if len(ids) != 3 {
		t.Errorf("rows cannot be told apart: %v", ids)
	}
}

// Quantiles are of lately: a slow hour last night does not show for ever.
func TestCallTimesAreOfLately(t *testing.T) {
	bounds := []float64{0.001, 0.01, 0.1, 1}
	h := looked(func(st *hybrid.Stats, _ *hybrid.LimiterStats, _ *limiterInfo) {
		st.CallTime = hybrid.Histogram{Bounds: bounds, Counts: []uint64{100, 0, 0, 5000, 0}, Sum: 2500.05}
	})
	h[0].stats.CallTime = hybrid.Histogram{Bounds: bounds, Counts: []uint64{0, 0, 0, 5000, 0}, Sum: 2500}
	s := storeOf(h.over(recentOf), h.over(ratesOf))
	if s.CallTime.Count.Value != 100 || s.CallTime.P99.Value > 0.001 || s.CallTime.Mean.Text != "500 µs" {
		t.Errorf("%+v", s.CallTime)
	}
	if s := storeOf(h[1:].over(recentOf), h[1:].over(ratesOf)); s.CallTime.Count.Value != 5100 || s.CallTime.P50.Value < 0.1 {
		t.Errorf("at the first look, of all time: %+v", s.CallTime)
	}
	h[0].stats.CallTime = h[1].stats.CallTime
	if s := storeOf(h.over(recentOf), h.over(ratesOf)); s.CallTime.Count.Value != 0 || s.CallTime.P50.Text != none {
		t.Errorf("without a call: %+v", s.CallTime)
	}
}
