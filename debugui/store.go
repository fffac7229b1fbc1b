package debugui

import (
	"cmp"
	"math"
	"slices"
	"time"

	"github.com/hybridlimit/hybrid"
)

// storeReport is Redis, as this node sees it.
type storeReport struct {
	Down     bool      `json:"down"`
	State    string    `json:"state"`
	Downs    figure    `json:"downs"`    // how often it went away
	SyncLag  figure    `json:"sync_lag"` // seconds since it last answered this node
	Calls    figure    `json:"calls_per_second"`
	CallTime spread    `json:"call_time"`  // seconds
	Batch    spread    `json:"batch_size"` // operations in a call
	Failures []failure `json:"failures"`   // by cause
	Outages  []outage  `json:"outages"`    // the latest first
	Quiet    bool      `json:"quiet"`      // no outage is remembered
	Unfailed bool      `json:"unfailed"`   // no operation ever failed
}

// spread is how values were spread lately.
type spread struct {
	Count figure `json:"count"`
	P50   figure `json:"p50"`
	P90   figure `json:"p90"`
	P99   figure `json:"p99"`
	Mean  figure `json:"mean"`
}

// failure is a cause for which operations were not run, or of unknown outcome.
type failure struct {
	Cause  string `json:"cause"`
	Recent figure `json:"recent"`
	Total  figure `json:"total"`
}

// outage is a time in which nobody waited for Redis.
type outage struct {
	ID    string     `json:"id"`
	Began *time.Time `json:"began"` // null if that is forgotten
	Ended *time.Time `json:"ended"` // null while it lasts
	From  string     `json:"from"`
	To    string     `json:"to"`
	Ago   string     `json:"ago"`
	Took  figure     `json:"took"` // seconds, until now if it lasts
	Cause string     `json:"cause"`
	State string     `json:"state"`
}

func storeOf(recent, now window) storeReport {
	st := &recent.to.stats
	calls := now.node(func(s *hybrid.Stats) uint64 { return s.Calls })
	r := storeReport{
		Down:     st.StoreDown,
		State:    "answers",
		Downs:    countOf(st.StoreDowns),
		SyncLag:  durationOf(st.SyncLag),
		Calls:    rateOf(now.perSecond(calls)),
		CallTime: spreadOf(since(recent.from.stats.CallTime, st.CallTime, recent), secondsOf),
		Batch:    wholeSpreadOf(since(recent.from.stats.BatchSize, st.BatchSize, recent)),
		Failures: failuresOf(recent),
		Outages:  outagesOf(st.StoreEvents, recent.to.at),
	}
	if st.StoreDown {
		r.State = "does not answer"
	}
	r.Quiet, r.Unfailed = len(r.Outages) == 0, len(r.Failures) == 0
	return r
}

// since returns the values that came in a window; all values if it is empty.
func since(from, to hybrid.Histogram, w window) hybrid.Histogram {
	if w.empty() || len(from.Counts) != len(to.Counts) {
		return to
	}
	grew := hybrid.Histogram{Bounds: to.Bounds, Counts: make([]uint64, len(to.Counts)), Sum: to.Sum - from.Sum}
	for i := range grew.Counts {
		grew.Counts[i] = grown(from.Counts[i], to.Counts[i])
	}
	return grew
}

func spreadOf(h hybrid.Histogram, unit func(float64) figure) spread {
	n := h.Count()
	s := spread{Count: countOf(n), P50: unknown, P90: unknown, P99: unknown, Mean: unknown}
	if n > 0 {
		s.P50, s.P90, s.P99 = unit(h.Quantile(0.5)), unit(h.Quantile(0.9)), unit(h.Quantile(0.99))
		s.Mean = unit(max(h.Sum, 0) / float64(n))
	}
	return s
}

// wholeSpreadOf is the spread of whole numbers: so are their quantiles. A quantile is
// interpolated within a range, which may put it below all values that are there. Their
// mean says how far up they are, so it is not below that either, within its range.
func wholeSpreadOf(h hybrid.Histogram) spread {
	s := spreadOf(h, countOf[float64])
	mean := math.Floor(float64(s.Mean.Value))
	for _, q := range []*figure{&s.P50, &s.P90, &s.P99} {
		const noise = 1e-9 // of the interpolation
		value := math.Ceil(float64(q.Value) - noise)
		if i := slices.IndexFunc(h.Bounds, func(bound float64) bool { return bound >= value }); i >= 0 {
			value = max(value, min(mean, h.Bounds[i]))
		}
		*q = countOf(value)
	}
	return s
}

// failuresOf lists causes, those of lately first.
func failuresOf(w window) []failure {
	list := []failure{}
	for cause, total := range w.to.stats.Failures {
		f := failure{Cause: printable(cause), Recent: unknown, Total: countOf(total)}
		if !w.empty() {
			f.Recent = countOf(grown(w.from.stats.Failures[cause], total))
		}
		list = append(list, f)
	}
	slices.SortFunc(list, func(a, b failure) int {
		return cmp.Or(cmp.Compare(b.Recent.Value, a.Recent.Value), cmp.Compare(b.Total.Value, a.Total.Value), cmp.Compare(a.Cause, b.Cause))
	})
	return list
}

// outagesOf pairs the beginnings and the ends that the node remembers.
func outagesOf(events []hybrid.StoreEvent, now time.Time) []outage {
	list := []outage{}
	var began *hybrid.StoreEvent
	for i := range events {
		switch e := &events[i]; {
		case e.Down:
			began = e
		default:
			list = append(list, outageOf(began, e, now))
			began = nil
		}
	}
	if began != nil {
		list = append(list, outageOf(began, nil, now))
	}
	slices.Reverse(list)
	return list
}

// outageOf describes an outage, of which either end may be missing.
func outageOf(began, ended *hybrid.StoreEvent, now time.Time) outage {
	o := outage{From: "before that", To: "lasts", Took: unknown, Cause: "forgotten", State: "down"}
	end := now
	if ended != nil {
		end = ended.At
		at := end.UTC()
		o.ID, o.Ended, o.To, o.State = at.Format(time.RFC3339Nano), &at, clock(end), "over"
		o.Ago = secondsText(now.Sub(end).Seconds()) + " ago"
	}
	if began != nil {
		at := began.At.UTC()
		o.ID, o.Began, o.From = at.Format(time.RFC3339Nano), &at, clock(began.At)
		o.Took, o.Cause = durationOf(max(end.Sub(began.At), 0)), causeText(began)
	}
	return o
}

func causeText(e *hybrid.StoreEvent) string {
	if e.Cause == "" {
		return "unknown"
	}
	return printable(e.Cause)
}
