package debugui

import (
	"math"
	"net/url"
	"time"

	"github.com/hybridlimit/hybrid"
)

// report is what the page shows, and what programs get. Rates are of the last few
// seconds, counts since the node was made.
type report struct {
	Name     string          `json:"name"`   // of this server
	At       time.Time       `json:"at"`     // of the look at the node
	Clock    string          `json:"clock"`  // the same for people
	Next     number          `json:"next"`   // seconds until there is a newer one
	Rates    figure          `json:"rates"`  // seconds that rates are of
	Recent   figure          `json:"recent"` // seconds that quantiles and causes of failures are of
	Verdict  verdict         `json:"verdict"`
	Node     nodeReport      `json:"node"`
	Store    storeReport     `json:"store"`
	Limiters []limiterReport `json:"limiters"`
	Denied   []deniedReport  `json:"denied"`

	at time.Time // with the monotonic clock
}

// nodeReport is what all limiters have in common.
type nodeReport struct {
	Admitted        figure `json:"admitted"`    // requests a second, with those that shadow mode lets pass; of slices tokens
	Denied          figure `json:"denied"`      // requests a second
	DeniedPart      figure `json:"denied_part"` // of all
	Shadowed        figure `json:"shadowed"`    // requests a second that would be denied, and pass in shadow mode
	OperationsEach  figure `json:"operations_per_request"`
	Keys            figure `json:"keys"`
	MaxKeys         figure `json:"max_keys"`
	KeysPart        figure `json:"keys_part"`
	KeysBar         number `json:"keys_bar"` // the same in hundredths
	Evictions       figure `json:"evictions"`
	EvictionsRate   figure `json:"evictions_per_second"`
	Poisoned        figure `json:"poisoned"`
	HooksDropped    figure `json:"hooks_dropped"`
	LogsDropped     figure `json:"logs_dropped"`
	RecallErrors    figure `json:"recall_errors"`
	Fleet           figure `json:"fleet"`
	HasNoLimiter    bool   `json:"has_no_limiter"`
	HasNoDenial     bool   `json:"has_no_denial"`
	KeysAreShown    bool   `json:"keys_are_shown"`
	ChartsLeftOut   int    `json:"charts_left_out"` // limiters without a chart, because there are so many
	ChartsLeftWords string `json:"charts_left_out_text"`
}

// limiterReport is one limiter.
type limiterReport struct {
	Name           string       `json:"name"`
	Ref            string       `json:"ref"` // the name as a URL has it
	Limit          string       `json:"limit"`
	LimitRate      figure       `json:"limit_per_second"` // of one key
	Accuracy       string       `json:"accuracy"`
	OnFailure      string       `json:"on_failure"`
	Shadow         bool         `json:"shadow"`
	WithoutRedis   string       `json:"without_redis"` // what callers get while Redis does not answer
	Overshoot      figure       `json:"overshoot"`     // what the fleet may admit beyond the limit now, as a part of it
	Bound          string       `json:"bound"`         // the same in words
	Fleet          figure       `json:"fleet"`
	Keys           figure       `json:"keys"`
	Admitted       figure       `json:"admitted"`    // a second; in shadow mode all requests
	LimitsUsed     figure       `json:"limits_used"` // what is admitted here, against what one key may use
	Denied         figure       `json:"denied"`      // a second; in shadow mode none
	DeniedPart     figure       `json:"denied_part"`
	Shadowed       figure       `json:"shadowed"` // a second: would be denied, and pass in shadow mode
	ShadowedPart   figure       `json:"shadowed_part"`
	OperationsEach figure       `json:"operations_per_request"`
	BlockedPart    figure       `json:"blocked_part"` // requests that waited for Redis, of all
	Paths          []pathReport `json:"paths"`
	Chart          *chart       `json:"chart"`    // null if there are very many limiters
	Counters       []namedCount `json:"counters"` // since it was made
}

// pathReport is who decided, and how. In shadow mode what a path denies passes all the same.
type pathReport struct {
	Path     string  `json:"path"`
	What     string  `json:"what"`
	Admitted *figure `json:"admitted"` // a second; null if this path never admits
	Denied   *figure `json:"denied"`
}

type namedCount struct {
	Name  string `json:"name"`
	What  string `json:"what"`
	Count figure `json:"count"`
}

// path is a kind of decision.
type path struct {
	name, what       string
	admitted, denied counter // nil if there is none
}

var paths = []path{
	{"slice", "in tokens, prepaid", func(s *hybrid.LimiterStats) uint64 { return s.SliceTokens }, nil},
	{"floor", "far below the limit", func(s *hybrid.LimiterStats) uint64 { return s.FloorAllowed }, nil},
	{"exact", "Redis was asked, or it can never fit, as with a limit of 0", func(s *hybrid.LimiterStats) uint64 { return s.ExactAllowed }, func(s *hybrid.LimiterStats) uint64 { return s.ExactDenied }},
	{"memo", "Redis’s last word", nil, func(s *hybrid.LimiterStats) uint64 { return s.MemoDenied }},
	{"fallback", "failure policy", func(s *hybrid.LimiterStats) uint64 { return s.FallbackAllowed }, func(s *hybrid.LimiterStats) uint64 { return s.FallbackDenied }},
}

// What the limit says: admitted and denied. What callers get: passed and refused.

func admitted(s *hybrid.LimiterStats) uint64 {
	return s.SliceTokens + s.FloorAllowed + s.ExactAllowed + s.FallbackAllowed
}

func denied(s *hybrid.LimiterStats) uint64 { return s.ExactDenied + s.MemoDenied + s.FallbackDenied }

func decided(s *hybrid.LimiterStats) uint64 { return admitted(s) + denied(s) }

func passed(s *hybrid.LimiterStats) uint64 { return admitted(s) + shadowed(s) }

func refused(s *hybrid.LimiterStats) uint64 { return denied(s) - shadowed(s) }

func shadowed(s *hybrid.LimiterStats) uint64 { return min(s.Shadowed, denied(s)) }

func operations(s *hybrid.LimiterStats) uint64 { return s.Operations }

func blocked(s *hybrid.LimiterStats) uint64 { return s.Blocked }

const (
	ratesOf  = 5 * time.Second // what people take for now, and no single burst
	recentOf = time.Minute     // for what is rare
)

// build makes a report of what is known.
func build(name string, keys *keyring, h history) *report {
	now, recent, last := h.over(ratesOf), h.over(recentOf), h.last()
	r := &report{
		Name:     nameOf(name),
		At:       last.at.UTC().Round(time.Millisecond),
		Clock:    clock(last.at),
		Rates:    spanOf(now),
		Recent:   spanOf(recent),
		Verdict:  judge(h),
		Node:     nodeOf(now, keys.plain),
		Store:    storeOf(recent, now),
		Limiters: []limiterReport{},
		Denied:   deniedOf(last, keys),
		at:       last.at,
	}
	charted := busiest(h, mostCharts)
	for i := range last.limiters {
		r.Limiters = append(r.Limiters, limiterOf(&last.limiters[i], now, h, charted))
	}
	if left := len(last.limiters) - len(charted); left > 0 {
		r.Node.ChartsLeftOut, r.Node.ChartsLeftWords = left, countText(float64(left))+" limiters have no chart: those with the fewest decisions"
	}
	return r
}

func spanOf(w window) figure {
	if w.empty() {
		return unknown
	}
	s := w.seconds()
	return figure{number(s), secondsText(max(math.Round(s), 1))}
}

func nodeOf(w window, keysAreShown bool) nodeReport {
	st := &w.to.stats
	fleet := st.Total.Fleet
	return nodeReport{
		Admitted:       rateOf(w.perSecond(w.all(passed))),
		Denied:         rateOf(w.perSecond(w.all(refused))),
		DeniedPart:     partOf(ratio(float64(w.all(refused)), float64(w.all(decided)))),
		Shadowed:       rateOf(w.perSecond(w.all(shadowed))),
		OperationsEach: countOf(ratio(float64(w.all(operations)), float64(w.all(decided)))),
		Keys:           countOf(st.Total.Keys),
		MaxKeys:        countOf(st.MaxKeys),
		KeysPart:       partOf(ratio(float64(st.Total.Keys), float64(st.MaxKeys))),
		KeysBar:        hundredths(ratio(float64(st.Total.Keys), float64(st.MaxKeys))),
		Evictions:      countOf(st.Evictions),
		EvictionsRate:  rateOf(w.perSecond(w.node(func(s *hybrid.Stats) uint64 { return s.Evictions }))),
		Poisoned:       countOf(st.Poisoned),
		HooksDropped:   countOf(st.HooksDropped),
		LogsDropped:    countOf(st.LogsDropped),
		RecallErrors:   countOf(st.RecallErrors),
		Fleet:          fleetOf(fleet),
		HasNoLimiter:   len(w.to.limiters) == 0,
		HasNoDenial:    len(w.to.denied) == 0,
		KeysAreShown:   keysAreShown,
	}
}

func fleetOf(nodes int) figure {
	if nodes == 0 {
		return figure{Value: unknown.Value, Text: "not known yet"}
	}
	return countOf(nodes)
}

func limiterOf(l *limiterInfo, w window, h history, charted map[string]bool) limiterReport {
	st := w.to.stats.Limiters[l.name]
	per := func(c counter) float64 { return float64(w.of(l.name, c)) }
	r := limiterReport{
		Name:           nameOf(l.name),
		Ref:            url.QueryEscape(l.name),
		Limit:          limitWords(l.limit),
		LimitRate:      rateOf(refill(l.limit)),
		Accuracy:       l.accuracy.String(),
		OnFailure:      l.onFailure.String(),
		Shadow:         l.shadow,
		WithoutRedis:   withoutRedis(l, st.Fleet),
		Overshoot:      partOf(l.overshoot(&st)),
		Bound:          l.bound(&st),
		Fleet:          fleetOf(st.Fleet),
		Keys:           countOf(st.Keys),
		Admitted:       rateOf(w.perSecond(w.of(l.name, passed))),
		LimitsUsed:     limitsUsed(w.perSecond(w.of(l.name, passed)), refill(l.limit)),
		Denied:         rateOf(w.perSecond(w.of(l.name, refused))),
		DeniedPart:     partOf(ratio(per(refused), per(decided))),
		Shadowed:       rateOf(w.perSecond(w.of(l.name, shadowed))),
		ShadowedPart:   partOf(ratio(per(shadowed), per(decided))),
		OperationsEach: countOf(ratio(per(operations), per(decided))),
		BlockedPart:    partOf(ratio(per(blocked), per(decided))),
		Counters:       countersOf(&st),
	}
	for _, p := range paths {
		r.Paths = append(r.Paths, pathReport{p.name, p.what, p.rate(p.admitted, l.name, w), p.rate(p.denied, l.name, w)})
	}
	if charted[l.name] {
		r.Chart = chartOf(l, h)
	}
	return r
}

// limitsUsed is how many keys would use up their limits with what is admitted.
func limitsUsed(perSecond, limit float64) figure {
	f := countOf(ratio(perSecond, limit))
	switch f.Text {
	case none:
	case "1":
		f.Text = "what 1 key may use"
	default:
		f.Text = "what " + f.Text + " keys may use"
	}
	return f
}

func (p *path) rate(c counter, limiter string, w window) *figure {
	if c == nil {
		return nil
	}
	f := rateOf(w.perSecond(w.of(limiter, c)))
	return &f
}

// countersOf lists what no other part of the report says.
func countersOf(s *hybrid.LimiterStats) []namedCount {
	one := func(name, what string, n uint64) namedCount { return namedCount{name, what, countOf(n)} }
	return []namedCount{
		one("admitted", "requests, of slices tokens", passed(s)),
		one("denied", "requests", refused(s)),
		one("shadowed", "of those admitted: would be denied, and pass in shadow mode", shadowed(s)),
		one("blocked", "requests that waited for Redis", s.Blocked),
		one("operations", "accounts settled in Redis", s.Operations),
		one("granted", "tokens lent to slices", s.Granted),
		one("slice_tokens", "tokens admitted from slices", s.SliceTokens),
		one("returned", "tokens of slices given back unused", s.Returned),
		one("recalled", "tokens given back because another server needed them", s.Recalled),
		one("expired", "tokens of slices that lapsed, or were lost on their way back", s.Expired),
		one("not_run", "operations that Redis did not execute", s.NotRun),
		one("unknown", "operations whose outcome is unknown", s.Unknown),
		one("dropped", "slices that Redis had forgotten", s.Dropped),
		one("rebuilt", "accounts that could not be read, and were replaced", s.Rebuilt),
		one("invalid_tiers", "answers of LimitFor that were no limit", s.InvalidTiers),
	}
}

// deniedReport is a key that is denied.
type deniedReport struct {
	ID      string `json:"id"` // to ask for its story; for some minutes, and of this process
	Key     string `json:"key"`
	Limiter string `json:"limiter"`
	Shadow  bool   `json:"shadow"` // it would be denied: the limiter lets it pass
	Rate    figure `json:"denied"` // requests a second
	Total   figure `json:"total"`  // since it came in touch with Redis
	Bar     number `json:"bar"`    // its rate in hundredths of the largest
}

func deniedOf(s *sample, keys *keyring) []deniedReport {
	list := make([]deniedReport, 0, len(s.denied))
	shadow := make(map[string]bool)
	for i := range s.limiters {
		shadow[s.limiters[i].name] = s.limiters[i].shadow
	}
	for _, d := range s.denied {
		list = append(list, deniedReport{
			ID:      keys.list(d.limiter, d.Key),
			Key:     keys.show(d.limiter, d.Key),
			Limiter: nameOf(d.limiter),
			Shadow:  shadow[d.limiter],
			Rate:    rateOf(d.Rate),
			Total:   countOf(d.Total),
			Bar:     number(round(100*ratio(d.Rate, s.denied[0].Rate), 3)),
		})
	}
	return list
}
