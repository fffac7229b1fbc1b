package debugui

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/hybridlimit/hybrid"
)

// The thresholds are those of docs/operations.md and of the alerts of contrib/hybridprom,
// as far as one node can judge: the page says at once what they wait for. Of CallTime it
// finds nothing, since a node does not tell its StoreTimeout.
const (
	lagLimit      = 5 * time.Second // heartbeats come every SyncInterval, or every second
	flappingIn    = 10 * time.Minute
	flappingTimes = 10
	rememberedFor = 5 * time.Minute // an outage that is over
	fallbackPart  = 0.001
	lostReplies   = 1 // a minute
	lostPart      = 0.01
	blockedPart   = 0.05
	keysPart      = 0.8
	leastRequests = 100 // before parts of them say anything
)

// redis finds what is wrong with Redis or the way there, although it is not down.
func (f *findings) redis() {
	st := &f.last.stats
	outages := outagesOf(st.StoreEvents, f.last.at)
	flaps := f.flapping(outages)
	if st.StoreDown {
		return // it is the headline
	}
	if len(f.last.limiters) > 0 && st.SyncLag > lagLimit {
		f.add(levelWarn, "Redis last answered this node "+secondsText(st.SyncLag.Seconds())+" ago",
			"A heartbeat is due each second. Redis refuses those of this node, and the log says why, or an outage is just being noticed; on all servers it is one. Floors close, so first requests of keys wait.")
	}
	if !flaps {
		f.lastOutage(outages)
	}
	if f.wasDown(outages) {
		return // what the outage has done is no news
	}
	if n, all := f.grew(fallback), f.grew(decided); float64(n) > fallbackPart*float64(all) {
		f.add(levelWarn, partText(ratio(float64(n), float64(all)))+" of requests were judged by the failure policy in the last minute, though Redis is up",
			"Single calls are late or refused. Compare Redis’s latency with Options.StoreTimeout."+f.causes())
	}
	if n := f.grew(func(s *hybrid.LimiterStats) uint64 { return s.Unknown }); float64(n) > lostReplies*max(1, f.recent.seconds()/60) {
		f.add(levelWarn, "Replies of Redis were lost in the last minute: "+countText(float64(n))+" operations have an unknown outcome",
			"A ReadTimeout that is too short, or a proxy in the way. The slices lapse, so less is admitted."+f.causes())
	}
	if n := f.grew(func(s *hybrid.LimiterStats) uint64 { return s.NotRun }); float64(n) > lostPart*float64(f.grew(operations)+n) {
		f.add(levelWarn, "Redis did not execute "+countText(float64(n))+" operations in the last minute", "It refuses them, or cannot be reached."+f.causes())
	}
	if n := f.nodeGrew(func(s *hybrid.Stats) uint64 { return s.RecallErrors }); n > 0 {
		f.add(levelWarn, "Servers cannot tell each other which keys are scarce",
			"The shard that holds those marks is away, or the user lacks rights for sorted sets.")
	}
	f.unregistered()
}

func fallback(s *hybrid.LimiterStats) uint64 { return s.FallbackAllowed + s.FallbackDenied }

// causes names what operations failed of in the last minute.
func (f *findings) causes() string {
	var seen []string
	for _, cause := range slices.Sorted(maps.Keys(f.last.stats.Failures)) {
		if n := grown(f.recent.from.stats.Failures[cause], f.last.stats.Failures[cause]); n > 0 {
			seen = append(seen, printable(cause)+" ("+countText(float64(n))+")")
		}
	}
	if len(seen) == 0 {
		return ""
	}
	return " Causes: " + strings.Join(seen, ", ") + "."
}

// flapping finds outages that come again and again, of which the last may go on.
func (f *findings) flapping(list []outage) bool {
	times := 0
	for _, o := range list {
		if o.Began != nil && f.last.at.Sub(*o.Began) < flappingIn {
			times++
		}
	}
	if times <= flappingTimes {
		return false
	}
	f.add(levelWarn, fmt.Sprintf("Redis went away %d times in ten minutes", times),
		"A StoreTimeout near the round trip, a pool that is too small, or a Redis that has too much to do.")
	return true
}

// lastOutage tells of an outage that is over.
func (f *findings) lastOutage(list []outage) {
	if len(list) > 0 && list[0].Ended != nil && f.last.at.Sub(*list[0].Ended) < rememberedFor {
		f.add(levelNote, "Redis was away for "+list[0].Took.Text+", until "+list[0].To+", "+list[0].Ago+": "+list[0].Cause,
			"What was admitted meanwhile is charged, at most up to the limit.")
	}
}

// wasDown reports whether an outage falls into the time that is judged.
func (f *findings) wasDown(list []outage) bool {
	return len(list) > 0 && list[0].Ended != nil && list[0].Ended.After(f.recent.from.at.Add(-interval))
}

// unregistered finds limiters that stay without a fleet.
func (f *findings) unregistered() {
	if f.now.seconds() < 4 {
		return
	}
	for _, l := range f.last.limiters {
		was, then := f.now.from.stats.Limiters[l.name]
		if then && was.Fleet == 0 && f.last.stats.Limiters[l.name].Fleet == 0 {
			f.add(levelWarn, nameOf(l.name)+" does not know its fleet",
				"Redis refuses to register this server; the log says why. The share of the limit is that of Options.Servers, or all of it.")
		}
	}
}

// limitsHold is what it means that a key is forgotten.
const limitsHold = " Limits hold, but for a key that is forgotten in an outage: what the policy admitted of it is not charged, one share more."

// keys finds what is wrong with accounts, in the node's memory and in Redis.
func (f *findings) keys() {
	st := &f.last.stats
	evicted := f.nodeGrew(func(s *hybrid.Stats) uint64 { return s.Evictions })
	switch {
	case evicted > 0:
		f.add(levelNote, "The node forgets keys, "+rateOf(f.recent.perSecond(evicted)).Text+": more are in use than MaxKeys, "+countText(float64(st.MaxKeys)),
			"If it lasts, raise Options.MaxKeys, or it is an attack."+limitsHold)
	case float64(st.Total.Keys) > keysPart*float64(st.MaxKeys):
		f.add(levelNote, "The node remembers "+partText(ratio(float64(st.Total.Keys), float64(st.MaxKeys)))+" of as many keys as it may", "Beyond MaxKeys it forgets those used least."+limitsHold)
	}
	if n := f.nodeGrew(func(s *hybrid.Stats) uint64 { return s.Poisoned }); n > 0 {
		f.add(levelWarn, "Redis refuses single accounts: "+countText(float64(n))+" times in the last minute",
			"Another program uses the prefix, or a key was written by hand. The log has the limiter; delete the key.")
	}
	if n := f.grew(func(s *hybrid.LimiterStats) uint64 { return s.Rebuilt }); n > 0 {
		f.add(levelWarn, countText(float64(n))+" accounts in Redis could not be read in the last minute, and were replaced",
			"Another program uses the prefix, or Redis’s clock was far ahead.")
	}
	if n := f.grew(func(s *hybrid.LimiterStats) uint64 { return s.Dropped }); float64(n) > lostPart*float64(f.grew(operations)) {
		f.add(levelWarn, "Redis had forgotten "+countText(float64(n))+" slices in the last minute", "It lost data, or this process stood still for minutes.")
	}
}

// users finds what is wrong in the program around the node.
func (f *findings) users() {
	if n := f.grew(func(s *hybrid.LimiterStats) uint64 { return s.InvalidTiers }); n > 0 {
		f.add(levelWarn, "LimitFor gave no valid limit "+countText(float64(n))+" times in the last minute", "The limiter’s own limit holds instead. The log has the first case.")
	}
	if n := f.nodeGrew(func(s *hybrid.Stats) uint64 { return s.HooksDropped }); n > 0 {
		f.add(levelWarn, "A hook is too slow: "+countText(float64(n))+" events were dropped in the last minute", "Requests do not notice.")
	}
	if n := f.nodeGrew(func(s *hybrid.Stats) uint64 { return s.LogsDropped }); n > 0 {
		f.add(levelWarn, "The log handler is too slow, or fails: "+countText(float64(n))+" lines were lost in the last minute", "Requests do not notice.")
	}
	for i := range f.last.limiters {
		f.limiter(&f.last.limiters[i])
	}
}

func (f *findings) limiter(l *limiterInfo) {
	name := nameOf(l.name)
	if l.shadow {
		f.add(levelNote, name+" is in shadow mode: it counts what it would deny, and admits everything", "LimiterOptions.Shadow")
	}
	if f.last.stats.StoreDown {
		return // who waited did so before the outage: nobody waits now
	}
	recent := f.past.of(l.name, recentOf)
	all, waited := recent.of(l.name, decided), recent.of(l.name, blocked)
	if l.accuracy != hybrid.Exact && all >= leastRequests && float64(waited) > blockedPart*float64(all) {
		f.add(levelNote, partText(ratio(float64(waited), float64(all)))+" of the requests of "+name+" wait for Redis",
			"Its limit is small for its fleet, or most keys are new. Redis’s latency is theirs.")
	}
}
