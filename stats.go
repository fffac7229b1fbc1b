package hybrid

import (
	"math"
	"time"

	"github.com/hybridlimit/hybrid/syncer"
)

// Stats is what a node has done since it was made. Numbers of one call are not
// one consistent snapshot: requests go on meanwhile. docs/operations.md says of each
// what is normal, and what to do where it is not.
//
// There is no key in it, nor an address, and it has as many numbers whatever keys
// there are.
type Stats struct {
	Limiters map[string]LimiterStats // by name; limiters that were closed alone are gone, those that the node's end has closed stay
	Total    LimiterStats            // their sum; falls when a limiter is closed

	StoreDown   bool          // nobody waits for Redis, or for a part of it, now
	StoreDowns  uint64        // how often that began
	StoreEvents []StoreEvent  // the last 32 such changes, oldest first, whether or not there is a hook; without Err
	SyncLag     time.Duration // since Redis, or a part of it, last answered this node, a settle or a heartbeat: about a second at most while all is well and there are limiters. Since New, before that

	Calls     uint64            // calls to Redis that carried operations, when they have ended or were given up
	CallTime  Histogram         // seconds that each took, until then
	BatchSize Histogram         // operations that each carried
	Failures  map[string]uint64 // operations not run or of unknown outcome (Total.NotRun + Total.Unknown, also of limiters that are closed), by cause: the words of the log, at most 32 and then "other". An operation is there a moment later than in Total

	MaxKeys      int    // Options.MaxKeys
	Evictions    uint64 // keys forgotten because of MaxKeys
	Poisoned     uint64 // times that Redis refused one account alone: a key of another type
	HooksDropped uint64 // events that the hooks were too slow for
	LogsDropped  uint64 // log lines that the Logger was too slow for, or failed at
	RecallErrors uint64 // failed exchanges of which keys are scarce
}

// LimiterStats counts the decisions and the costs of one limiter. Requests
// unless it says tokens.
type LimiterStats struct {
	SliceTokens     uint64 // tokens admitted from slices; requests are not counted there
	FloorAllowed    uint64 // admitted by floors
	ExactAllowed    uint64 // admitted by Redis, or without it because the key is unlimited
	ExactDenied     uint64 // refused by Redis, or without it because they can never pass: a cost above the burst, a limit of 0
	MemoDenied      uint64 // denied from memory, but for single ones at the moment when the memory changes
	FallbackAllowed uint64 // admitted by the failure policy
	FallbackDenied  uint64 // denied by it
	Shadowed        uint64 // denied, and allowed in shadow mode

	Blocked    uint64 // requests that waited for Redis
	Operations uint64 // accounts settled in Redis
	Granted    uint64 // tokens granted to slices
	Recalled   uint64 // tokens given back because another node needed them: some of Returned
	Returned   uint64 // tokens of slices that Redis has taken back unused
	Expired    uint64 // tokens of slices that were not used when their leases ended, or were on their way back when a call was lost
	Dropped    uint64 // slices that Redis had forgotten when they were reported, and had no room for
	Rebuilt    uint64 // accounts in Redis that were unreadable, or far ahead of its clock, and were replaced
	NotRun     uint64 // operations that Redis certainly did not execute
	Unknown    uint64 // operations that Redis may have executed

	InvalidTiers uint64 // answers of LimitFor that were no limit
	Keys         int    // keys remembered now
	Waiters      int    // callers of Wait now, in line or waiting for their turn
	Fleet        int    // live nodes, as last heard of Redis, whatever Options.Servers says; 0 before that

	// Overshoot is what the fleet may admit beyond the limit now, as a part of it: the
	// Accuracy's over. While StoreDown it is one limit more under FailLocal, 1 + over,
	// from the onset of the outage, if Options.Servers is set; +Inf under FailOpen; and
	// no more than ever under FailClosed. Of several limiters it is the largest. A limiter
	// in shadow mode admits everything: of it, this is the bound as if it were enforced.
	// encoding/json refuses Stats while it is +Inf.
	Overshoot float64
}

func (s *LimiterStats) add(o LimiterStats) {
	s.SliceTokens += o.SliceTokens
	s.FloorAllowed += o.FloorAllowed
	s.ExactAllowed += o.ExactAllowed
	s.ExactDenied += o.ExactDenied
	s.MemoDenied += o.MemoDenied
	s.FallbackAllowed += o.FallbackAllowed
	s.FallbackDenied += o.FallbackDenied
	s.Shadowed += o.Shadowed
	s.Blocked += o.Blocked
	s.Operations += o.Operations
	s.Granted += o.Granted
	s.Recalled += o.Recalled
	s.Returned += o.Returned
	s.Expired += o.Expired
	s.Dropped += o.Dropped
	s.Rebuilt += o.Rebuilt
	s.NotRun += o.NotRun
	s.Unknown += o.Unknown
	s.InvalidTiers += o.InvalidTiers
	s.Keys += o.Keys
	s.Waiters += o.Waiters
	s.Fleet = max(s.Fleet, o.Fleet)
	s.Overshoot = max(s.Overshoot, o.Overshoot)
}

func limiterStats(l *syncer.Limiter) LimiterStats {
	c := &l.Counts
	return LimiterStats{
		SliceTokens:     c.SliceTokens.Load(),
		FloorAllowed:    c.Floor.Load(),
		ExactAllowed:    c.ExactAllowed.Load(),
		ExactDenied:     c.ExactDenied.Load(),
		MemoDenied:      c.MemoDenied.Load(),
		FallbackAllowed: c.PolicyAllowed.Load(),
		FallbackDenied:  c.PolicyDenied.Load(),
		Shadowed:        c.Shadowed.Load(),
		Blocked:         c.Blocked.Load(),
		Operations:      c.Operations.Load(),
		Granted:         c.Granted.Load(),
		Recalled:        c.Recalled.Load(),
		Returned:        c.Returned.Load(),
		Expired:         c.Expired.Load(),
		Dropped:         c.Dropped.Load(),
		Rebuilt:         c.Rebuilt.Load(),
		NotRun:          c.NotRun.Load(),
		Unknown:         c.Unknown.Load(),
		InvalidTiers:    c.InvalidTiers.Load(),
		Keys:            l.Keys(),
		Fleet:           l.Fleet(),
	}
}

// Stats returns what the node has done. It looks at every key: call it every few
// seconds, not per request. With a million cold keys and 50,000 in touch with Redis it
// takes 26 ms of one core, a fifth of it for those in touch, and holds up no request
// (go test -bench Watching, 2026-11-30, go1.26.8, linux/amd64, two cores).
func (n *Node) Stats() Stats {
	st := Stats{
		Limiters:     make(map[string]LimiterStats),
		StoreDown:    n.sync.Down(),
		StoreDowns:   n.sync.Calls().BreakerOpens.Load(),
		StoreEvents:  n.events.recent(),
		SyncLag:      n.sync.Silence(),
		Calls:        n.sync.Calls().Calls.Load(),
		CallTime:     histogramOf(n.sync.Calls().CallTime, float64(time.Second)),
		BatchSize:    histogramOf(n.sync.Calls().BatchSize, 1),
		Failures:     n.events.failures.ByCause(),
		MaxKeys:      n.opts.MaxKeys,
		Evictions:    n.sync.Evictions(),
		Poisoned:     n.events.poisoned.Load(),
		HooksDropped: n.events.dropped.Load(),
		LogsDropped:  n.events.log.Lost(),
		RecallErrors: n.sync.ExchangeErrors(),
	}
	n.sync.Collect()
	for _, l := range n.sync.Limiters() {
		one := limiterStats(l)
		one.Overshoot = n.overshoot(l, st.StoreDown)
		one.Waiters = n.waiters(l)
		st.Limiters[l.Name()] = one
		st.Total.add(one)
	}
	return st
}

// waiters returns the callers of Wait; 0 for a limiter that is just being made or closed.
func (n *Node) waiters(core *syncer.Limiter) int {
	if l, ok := n.limiters.Load(core); ok {
		return l.(*Limiter).waits.Callers()
	}
	return 0
}

// overshoot returns the part of a limiter's limit that may be admitted on top of it,
// for docs/accuracy.md's reasons; 0 for one that is just being made or closed.
func (n *Node) overshoot(core *syncer.Limiter, down bool) float64 {
	l, ok := n.limiters.Load(core)
	if !ok {
		return 0
	}
	opts := &l.(*Limiter).opts
	over := opts.Accuracy.Over()
	switch {
	case !down || opts.OnFailure == FailClosed:
		return over
	case opts.OnFailure == FailOpen:
		return math.Inf(1)
	default:
		return 1 + over
	}
}

// KeyDenials is how much a key is denied on this node.
type KeyDenials struct {
	Key   string  // beyond 64 bytes "#" and its SHA-256, as in Redis
	Rate  float64 // requests/s denied lately: an average over ten seconds or so
	Total uint64  // requests denied since the key came in touch with Redis
}

// Denied returns at most so many keys, those first that this node denies most often,
// for whoever looks at a service that is under attack, or at a customer who is stuck.
// Requests that can never pass do not count: costs above the burst, a limit of 0. Like
// Stats it looks at every key, every second or more rarely.
//
// Keys are what clients send: show them to people, and not to a system that keeps a
// series for each.
func (l *Limiter) Denied(most int) []KeyDenials {
	denied := l.core.Denied(most)
	list := make([]KeyDenials, len(denied))
	for i, d := range denied {
		list[i] = KeyDenials(d)
	}
	return list
}
