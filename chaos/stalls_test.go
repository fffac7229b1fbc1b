package chaos

import (
	"cmp"
	"slices"
	"time"
)

// This file is what a busy machine excuses. It excuses by amount: what came of a
// stall may last as long as a stall can be felt, and no longer.

// stalled reports whether the machine kept fleet and server from their work between
// two times, or just before, so that calls may be too late for no fault of anybody:
// timers and a server were late, together, by half of StoreTimeout. A call waits for
// one after the other, for the server to answer and for its own process to notice;
// it must get by with the other half.
func (o *outcome) stalled(from, to time.Duration) bool {
	return worst(o.servers, from-aftermath, to)+o.worstControl(from-aftermath, to) > o.timeout/2
}

// aftermath is for how long after a stall calls are still late for it: those that
// queued up in it are answered one after the other.
const aftermath = 150 * time.Millisecond

// findServers returns how late servers were: one that no fault befalls and the server
// itself, but not while a fault lasts that its pings may meet as well.
func (o *outcome) findServers() []late {
	all := slices.Clone(o.others)
	for _, p := range o.pings {
		if o.well || p.at < o.began || p.at-p.by > o.ready {
			all = append(all, p)
		}
	}
	slices.SortStableFunc(all, func(a, b late) int { return cmp.Compare(a.at, b.at) })
	return all
}

// stall is a time in which something was due and did not happen, by a quarter of
// StoreTimeout or more.
type stall struct{ from, to time.Duration }

// findStalls returns the stalls of timers and servers. Those that overlap are one.
func (o *outcome) findStalls() (joined []stall) {
	var all []stall
	for _, l := range slices.Concat(o.controls, o.servers) {
		if l.by > o.timeout/4 {
			all = append(all, stall{l.at - l.by, l.at})
		}
	}
	slices.SortFunc(all, func(a, b stall) int { return cmp.Compare(a.from, b.from) })
	for _, s := range all {
		if n := len(joined); n > 0 && s.from <= joined[n-1].to {
			joined[n-1].to = max(joined[n-1].to, s.to)
			continue
		}
		joined = append(joined, s)
	}
	return joined
}

// stoodStill is for how long the machine stood still between two times.
func (o *outcome) stoodStill(from, to time.Duration) (total time.Duration) {
	for _, s := range o.stalls {
		total += max(0, min(s.to, to)-max(s.from, from))
	}
	return total
}

// disturbed is how much of a run stalls can be felt in.
func (o *outcome) disturbed() (total time.Duration) {
	for from := time.Duration(0); from < o.stopped; from += bin {
		if o.stalled(from, from+bin) {
			total += bin
		}
	}
	return total
}

// busy reports whether the machine gave so little time to a run that its times prove
// little either way: stalls can be felt in a quarter of it.
func (o *outcome) busy() bool { return o.disturbed() >= o.stopped/4 }

// excused reports whether an answer by policy is down to a stall of the machine:
// one in the time of the call, or one that made its node stop waiting.
func (o *outcome) excused(a *answer) bool {
	return o.stalled(a.at, a.end()) || slices.ContainsFunc(o.outages(a.node), func(out outage) bool {
		return out.from <= a.end() && a.at <= out.to && o.causeless(out) && a.at <= o.feltUntil(out)
	})
}

// causeless reports whether an outage began in a stall, and not in the fault.
func (o *outcome) causeless(out outage) bool {
	during := out.from >= o.began && out.from <= o.ready && o.expect.down != never
	return !during && o.stalled(out.from, out.from)
}

// feltUntil is when an outage that began in a stall must be over: two ticks after
// the stall, for it may have cost the first probe, and after what the breaker stays
// open at least. A long stall that comes until then may cost a probe as well.
func (o *outcome) feltUntil(out outage) time.Duration {
	until := out.from + out.hold + twoTicks(o)
	for _, s := range o.stalls {
		if s.to-s.from > o.timeout/2 && s.from <= until && s.to >= out.from {
			until = max(until, s.to+twoTicks(o))
		}
	}
	return until
}

// recoveredInTime reports whether an outage of the fault ended when it was due. It
// may have ended later by twice what the machine has stood still since the store was
// ready, as the tick and then the probe may each be late, and by a tick, if a stall
// cost a probe.
func (o *outcome) recoveredInTime(out outage, due time.Duration) bool {
	if o.stalled(o.ready, out.to) {
		due += 2*o.stoodStill(o.ready, out.to) + o.tick
	}
	return out.ended && out.to <= due
}
