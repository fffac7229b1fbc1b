package ledger

import (
	"maps"
	"time"
)

// What can happen to a store's data and clock.

// Lose forgets everything, as a Redis without persistence that starts again.
func (s *Store) Lose() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.data = newData()
}

// Skew sets how far the store's clock is ahead of time.Now. A change is a step
// of the clock, forwards or backwards; what is stored expires by the new one.
func (s *Store) Skew(ahead time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.skew = ahead
}

// Clock returns the store's clock in µs since the Unix epoch.
func (s *Store) Clock() int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.now()
}

// Snapshot is what a store held at some moment.
type Snapshot struct{ data data }

// Snapshot copies all that is stored: a replica that hears nothing from now on.
func (s *Store) Snapshot() *Snapshot {
	s.mu.Lock()
	defer s.mu.Unlock()
	return &Snapshot{data: s.data.clone()}
}

// Restore makes a snapshot what the store holds, as a failover to a replica
// that was behind does. What has expired since is gone. A snapshot can be
// restored many times.
func (s *Store) Restore(old *Snapshot) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.data = old.data.clone()
}

func (d *data) clone() data {
	c := data{accounts: maps.Clone(d.accounts), sweepAt: d.sweepAt, marks: d.marks.clone(),
		fleets: make(map[string]*registry, len(d.fleets))}
	for limiter, r := range d.fleets {
		c.fleets[limiter] = r.clone()
	}
	return c
}
