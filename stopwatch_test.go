package hybrid

import (
	"crypto/sha256"
	"fmt"
	"runtime"
	"slices"
	"sync"
	"time"
)

// This file measures how long calls take, and what beside them takes about as long
// on the same machine.

// stopwatch keeps how long calls took. It is for one goroutine.
type stopwatch struct{ took []time.Duration }

func (s *stopwatch) time(f func()) {
	start := time.Now()
	f()
	s.took = append(s.took, time.Since(start))
}

// part returns the time that such a part of the calls took at most.
func (s *stopwatch) part(p float64) time.Duration {
	if len(s.took) == 0 {
		return 0
	}
	sorted := slices.Sorted(slices.Values(s.took))
	return sorted[int(p*float64(len(sorted)-1))]
}

func (s *stopwatch) longest() time.Duration { return s.part(1) }

func (s *stopwatch) String() string {
	return fmt.Sprintf("%v at p50, %v at p99.9, %v at most", s.part(0.5), s.part(0.999), s.longest())
}

// bareTable is what no limiter can do without: it remembers the last so many keys
// under a lock, and asks another goroutine. It works about as long as a limiter:
// on a busy machine, a call is interrupted the more often the more it has to do.
type bareTable struct {
	mu   sync.Mutex
	keys map[string]bool
	ring []string
	next int
	ask  chan chan bool
}

func (b *bareTable) open(size int) {
	b.keys, b.ring, b.ask = make(map[string]bool), make([]string, size), make(chan chan bool)
	go func() {
		for answer := range b.ask {
			work()
			answer <- true
		}
	}()
}

func (b *bareTable) close() { close(b.ask) }

// work is some microseconds of it.
func work() {
	var sum [sha256.Size]byte
	for range 50 {
		sum = sha256.Sum256(sum[:])
	}
	runtime.KeepAlive(sum)
}

func (b *bareTable) call(key string) {
	work()
	b.mu.Lock()
	delete(b.keys, b.ring[b.next])
	b.keys[key], b.ring[b.next] = true, key
	b.next = (b.next + 1) % len(b.ring)
	b.mu.Unlock()
	answer := make(chan bool, 1)
	b.ask <- answer
	<-answer
}
