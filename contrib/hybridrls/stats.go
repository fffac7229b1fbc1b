package hybridrls

import "sync/atomic"

// Stats is what a server has done since it was made. What each limit did is in
// hybrid.Node.Stats, under DOMAIN/RULE.
type Stats struct {
	Requests uint64 // calls, of which each is one of the next three
	Allowed  uint64 // OK
	Denied   uint64 // OVER_LIMIT
	Errors   uint64 // neither

	UnknownDomains uint64 // requests for a domain that has no rules
	Unmatched      uint64 // descriptors that no rule matches

	Rules    int    // in force, of all domains
	Reloads  uint64 // files that Watch has put in force
	BadFiles uint64 // files that it could not: the rules before them stay
}

type counters struct {
	requests, allowed, denied, errors atomic.Uint64
	unknownDomains, unmatched         atomic.Uint64
	reloads, badFiles                 atomic.Uint64
}

// Stats returns what the server has done. Numbers of one call are not one
// consistent snapshot: requests go on meanwhile.
func (s *Server) Stats() Stats {
	s.mu.RLock()
	rules := s.rules.rules
	s.mu.RUnlock()
	c := &s.counters
	return Stats{
		Requests:       c.requests.Load(),
		Allowed:        c.allowed.Load(),
		Denied:         c.denied.Load(),
		Errors:         c.errors.Load(),
		UnknownDomains: c.unknownDomains.Load(),
		Unmatched:      c.unmatched.Load(),
		Rules:          rules,
		Reloads:        c.reloads.Load(),
		BadFiles:       c.badFiles.Load(),
	}
}
