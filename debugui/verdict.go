package debugui

import (
	"cmp"
	"math"
	"slices"

	"github.com/hybridlimit/hybrid"
)

// verdict is what an operator reads first: whether all is well and, if not, what.
type verdict struct {
	Level    string    `json:"level"` // ok, warn or bad
	Word     string    `json:"word"`
	Headline string    `json:"headline"`
	Advice   string    `json:"advice"` // what the headline means, or what helps
	Summary  string    `json:"summary"`
	Down     bool      `json:"down"`
	Callers  []caller  `json:"callers"` // while Redis is down
	Also     []finding `json:"also"`    // what else there is, the worst first
}

// caller is what a limiter's callers get now.
type caller struct {
	Limiter string `json:"limiter"`
	Policy  string `json:"policy"`
	Text    string `json:"text"`
}

// finding is one thing to know.
type finding struct {
	Level string `json:"level"` // note or warn
	Text  string `json:"text"`
	Do    string `json:"do"` // what it means, or what helps
}

const (
	levelOK   = "ok"
	levelNote = "note"
	levelWarn = "warn"
	levelBad  = "bad"
)

// judge says how a node is. An outage is the headline, else the first warning.
func judge(h history) verdict {
	f := findings{past: h, recent: h.over(recentOf), now: h.over(ratesOf), last: h.last()}
	f.redis()
	f.keys()
	f.users()
	slices.SortStableFunc(f.list, func(a, b finding) int { return cmp.Compare(b.Level, a.Level) }) // "warn" before "note"
	v := verdict{
		Level: levelOK, Word: "OK", Headline: "All is well",
		Summary: summary(f.now, f.recent), Callers: []caller{}, Also: append([]finding{}, f.list...),
	}
	switch {
	case f.last.stats.StoreDown:
		f.outage(&v)
	case len(f.list) > 0 && f.list[0].Level == levelWarn:
		v.Level, v.Word = levelWarn, "Look"
		v.Headline, v.Advice, v.Also = f.list[0].Text, f.list[0].Do, v.Also[1:]
	case len(f.last.limiters) == 0:
		v.Headline = "All is well: this node has no limiters"
	}
	return v
}

// outage is the verdict while Redis does not answer: since when, why, and what
// callers get from each limiter.
func (f *findings) outage(v *verdict) {
	v.Level, v.Word, v.Down = levelBad, "Down", true
	v.Headline = "Redis does not answer"
	out, cause := outagesOf(f.last.stats.StoreEvents, f.last.at), ""
	if len(out) > 0 && out[0].Began != nil && out[0].Ended == nil {
		cause = out[0].Cause
		v.Headline += ": " + cause
		v.Advice = "Since " + out[0].From + ", for " + out[0].Took.Text + ". "
	}
	v.Advice += "No request waits for it, and none fails: each limiter follows its policy. Mend Redis or the way to it: the node notices by itself." + partWords(cause)
	for i := range f.last.limiters {
		l := &f.last.limiters[i]
		v.Callers = append(v.Callers, caller{
			nameOf(l.name), l.onFailure.String(), withoutRedis(l, f.last.stats.Limiters[l.name].Fleet),
		})
	}
}

// partWords says whether it may be a part of Redis alone that is away. A node does not
// know what kind of client it has, but some causes tell.
func partWords(cause string) string {
	switch cause {
	case "no node of the cluster is reachable", "all shards of the ring are down", "no sentinel is reachable", "no cluster":
		return "" // it is not
	case "a shard of the ring is down":
		return " Keys of other shards are not affected."
	case "reply CLUSTERDOWN", "reply MOVED", "reply ASK", "reply TRYAGAIN":
		return " Keys in parts of the Cluster that answer are not affected."
	}
	return " If Redis is a Cluster or a Ring, it may be one part of it: then the keys of the others are not affected."
}

// summary is how busy the node is, and how quick Redis.
func summary(now, recent window) string {
	st := &now.to.stats
	if len(now.to.limiters) == 0 {
		return "Limiters appear here as soon as they are made. A node that is closed has none."
	}
	text := "The first look; rates follow with the next one."
	if !now.empty() {
		text = rateOf(now.perSecond(now.all(decided))).Text + " decided"
		all := float64(now.all(decided))
		if n := now.all(refused); n > 0 {
			text += ", " + partText(ratio(float64(n), all)) + " of them denied"
		}
		if n := now.all(shadowed); n > 0 {
			text += ", " + partText(ratio(float64(n), all)) + " only let through in shadow mode"
		}
		text += "."
	}
	calls := since(recent.from.stats.CallTime, st.CallTime, recent)
	switch {
	case st.StoreDown:
	case calls.Count() > 0:
		text += " Redis answers in " + secondsText(calls.Quantile(0.5)) + ", 99 of 100 times within " + secondsText(calls.Quantile(0.99)) + "."
	case !recent.empty():
		text += " Redis was not needed in the last " + secondsText(math.Round(recent.seconds())) + "."
	}
	return text
}

// findings looks for what an operator should know.
type findings struct {
	past        history
	now, recent window
	last        *sample
	list        []finding
}

func (f *findings) add(level, text, do string) { f.list = append(f.list, finding{level, text, do}) }

// grew returns how much a counter of all limiters grew lately, and how much one of
// the node did.
func (f *findings) grew(c counter) uint64 { return f.recent.all(c) }

func (f *findings) nodeGrew(c func(*hybrid.Stats) uint64) uint64 { return f.recent.node(c) }
