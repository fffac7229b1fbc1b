package baseline

import (
	"sync"
	"sync/atomic"
	"time"

	"github.com/hybridlimit/hybrid/lab/sim"
)

// store is the central one: an account per key, a round trip away.
type store struct {
	law law
	rtt func() time.Duration

	operations, commands, roundTrips, blocked atomic.Int64

	mu       sync.Mutex
	accounts map[string]usage
}

func newStore(l law, rtt func() time.Duration) *store {
	return &store{law: l, rtt: rtt, accounts: map[string]usage{}}
}

// call makes one round trip, in which the store executes n operations at the
// time that it gives to them.
func (s *store) call(n int, execute func(now int64)) {
	trip := s.rtt()
	time.Sleep(trip / 2)
	s.execute(n, execute)
	time.Sleep(trip - trip/2)
}

func (s *store) execute(n int, execute func(now int64)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.roundTrips.Add(1)
	s.commands.Add(int64(n))
	s.operations.Add(int64(n))
	execute(time.Now().UnixNano())
}

// account is the key's account, drained up to now. The store's lock is held.
func (s *store) account(now int64, key string) usage {
	u, ok := s.accounts[key]
	if !ok {
		u.at = now
	}
	return s.law.drain(u, now)
}

// put stores an account. The store's lock is held.
func (s *store) put(key string, u usage) {
	s.accounts[key] = u
}

// Cost is part of sim.Subject.
func (s *store) Cost() sim.Cost {
	return sim.Cost{
		Operations: s.operations.Load(),
		Commands:   s.commands.Load(),
		RoundTrips: s.roundTrips.Load(),
		Blocked:    s.blocked.Load(),
	}
}
