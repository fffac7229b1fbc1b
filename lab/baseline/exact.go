package baseline

import "github.com/hybridlimit/hybrid/lab/sim"

// exactFleet asks the store for every request, as a limiter does that is one Lua
// script. It is always right, and never faster than the network.
type exactFleet struct{ *store }

// Ask is part of sim.Subject.
func (f *exactFleet) Ask(_ int, key string, cost int64) sim.Answer {
	f.blocked.Add(1)
	answer := sim.Answer{Blocked: true}
	f.call(1, func(now int64) {
		answer.At = now
		answer.Allowed = f.take(now, key, cost)
	})
	return answer
}

func (s *store) take(now int64, key string, cost int64) bool {
	u := s.account(now, key)
	if !s.law.fits(u, cost) {
		return false
	}
	u.used += float64(cost)
	s.put(key, u)
	return true
}

// Close is part of sim.Subject.
func (f *exactFleet) Close() {}
