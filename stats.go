package hybrid

import "github.com/hybridlimit/hybrid/syncer"

// Stats is what a node has done since it was made. Numbers of one call are not
// one consistent snapshot: requests go on meanwhile.
type Stats struct {
	Limiters map[string]LimiterStats // by name; closed limiters are gone
	Total    LimiterStats            // their sum; falls when a limiter is closed

	StoreDown    bool   // nobody waits for Redis, or for a part of it, now
	StoreDowns   uint64 // how often that began
	Calls        uint64 // calls to Redis that carried operations
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
	ExactAllowed    uint64 // admitted by Redis
	ExactDenied     uint64 // refused by Redis
	MemoDenied      uint64 // denied from memory
	FallbackAllowed uint64 // admitted by the failure policy
	FallbackDenied  uint64 // denied by it
	Shadowed        uint64 // denied, and allowed in shadow mode

	Blocked    uint64 // requests that waited for Redis
	Operations uint64 // accounts settled in Redis
	Granted    uint64 // tokens granted to slices
	Recalled   uint64 // tokens given back because another node needed them
	Dropped    uint64 // slices that Redis had forgotten when they were reported, and had no room for
	Rebuilt    uint64 // accounts in Redis that were unreadable, or far ahead of its clock, and were replaced
	NotRun     uint64 // operations that Redis certainly did not execute
	Unknown    uint64 // operations that Redis may have executed

	InvalidTiers uint64 // answers of LimitFor that were no limit
	Keys         int    // keys remembered now
	Fleet        int    // live nodes, as last heard of Redis, whatever Options.Servers says; 0 before that
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
	s.Dropped += o.Dropped
	s.Rebuilt += o.Rebuilt
	s.NotRun += o.NotRun
	s.Unknown += o.Unknown
	s.InvalidTiers += o.InvalidTiers
	s.Keys += o.Keys
	s.Fleet = max(s.Fleet, o.Fleet)
}

func limiterStats(l *syncer.Limiter) LimiterStats {
	l.Collect()
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
		Dropped:         c.Dropped.Load(),
		Rebuilt:         c.Rebuilt.Load(),
		NotRun:          c.NotRun.Load(),
		Unknown:         c.Unknown.Load(),
		InvalidTiers:    c.InvalidTiers.Load(),
		Keys:            l.Keys(),
		Fleet:           l.Fleet(),
	}
}

// Stats returns what the node has done. It looks at every key that is in touch
// with Redis: call it every few seconds, not per request.
func (n *Node) Stats() Stats {
	st := Stats{
		Limiters:     make(map[string]LimiterStats),
		StoreDown:    n.sync.Down(),
		StoreDowns:   n.sync.Counts.BreakerOpens.Load(),
		Calls:        n.sync.Counts.Calls.Load(),
		Evictions:    n.sync.Evictions(),
		Poisoned:     n.events.poisoned.Load(),
		HooksDropped: n.events.dropped.Load(),
		LogsDropped:  n.events.log.lost.Load(),
		RecallErrors: n.sync.Counts.MarkErrors.Load(),
	}
	for _, l := range n.sync.Limiters() {
		one := limiterStats(l)
		st.Limiters[l.Name()] = one
		st.Total.add(one)
	}
	return st
}
