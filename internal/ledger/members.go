package ledger

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/hybridlimit/hybrid/slice"
)

// registry is the fleet of one limiter.
type registry struct {
	seen  []sighting // by name
	until int64      // ms, the last that it lives to see
}

// sighting is the last heartbeat of a member.
type sighting struct {
	name string
	at   int64 // ms
}

func byName(s sighting, name string) int { return strings.Compare(s.name, name) }

func (r *registry) clone() *registry {
	return &registry{seen: slices.Clone(r.seen), until: r.until}
}

// Heartbeat registers member in the fleet of each limiter for ttl (1 ms to
// 10^9 ms, in whole milliseconds), and fills in Members, Joined and Err.
func (s *Store) Heartbeat(_ context.Context, member string, ttl time.Duration, fleets []*slice.Fleet) {
	s.mu.Lock()
	defer s.mu.Unlock()
	now, span := s.now()/1000, ttl.Milliseconds()
	for _, f := range fleets {
		f.Members, f.Joined, f.Err, f.Refused, f.Lone = nil, false, nil, false, false
		if span < 1 || span > 1e9 {
			f.Err, f.Refused = errBadArgument, true
			continue
		}
		r := s.data.fleets[f.Limiter]
		if r == nil {
			r = &registry{}
			s.data.fleets[f.Limiter] = r
		}
		f.Joined = r.beat(member, now, span)
		f.Members = r.names()
	}
}

// beat registers a member, and returns whether it was not registered before.
func (r *registry) beat(member string, now, ttl int64) (joined bool) {
	r.age(now, ttl)
	i, known := slices.BinarySearchFunc(r.seen, member, byName)
	if !known {
		r.seen = slices.Insert(r.seen, i, sighting{name: member})
	}
	r.seen[i].at = now
	r.until = now + 2*ttl
	return !known
}

// age removes who was silent for ttl. After the clock stepped back, members
// seem to come from the future: they are alive, and have to age from now on.
func (r *registry) age(now, ttl int64) {
	if now > r.until {
		r.seen = nil
	}
	for i := range r.seen {
		r.seen[i].at = min(r.seen[i].at, now)
	}
	r.seen = slices.DeleteFunc(r.seen, func(s sighting) bool { return s.at <= now-ttl })
}

func (r *registry) names() []string {
	names := make([]string, len(r.seen))
	for i, s := range r.seen {
		names[i] = s.name
	}
	return names
}

// Leave ends the registration of member in the fleets of the limiters.
func (s *Store) Leave(_ context.Context, member string, limiters []string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, l := range limiters {
		r := s.data.fleets[l]
		if r == nil {
			continue
		}
		if i, known := slices.BinarySearchFunc(r.seen, member, byName); known {
			r.seen = slices.Delete(r.seen, i, i+1)
		}
		if len(r.seen) == 0 {
			delete(s.data.fleets, l)
		}
	}
	return nil
}

// Members returns, in ascending order, whom a heartbeat with this ttl would
// find registered, and changes nothing.
func (s *Store) Members(limiter string, ttl time.Duration) []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	r := s.data.fleets[limiter]
	if r == nil {
		return nil
	}
	r = r.clone()
	r.age(s.now()/1000, ttl.Milliseconds())
	return r.names()
}
