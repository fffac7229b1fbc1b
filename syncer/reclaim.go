package syncer

import (
	"context"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/hybridlimit/hybrid/internal/key"
	"github.com/hybridlimit/hybrid/slice"
)

// reclaimer exchanges requests to release tokens: of accounts of which a request was
// refused although the tokens are out in other nodes' slices. A node publishes its
// own and, if it holds slices, follows the others'.
type reclaimer struct {
	s      *Syncer
	clock  atomic.Int64  // µs, the clock of the part of the store that was heard last less the node's
	errors atomic.Uint64 // failed exchanges

	mu       sync.Mutex
	requests []slice.Mark // to be published with the next tick

	// Owned by the exchange.
	since   int64 // µs of the store, newest request read
	crowded bool  // the last read returned as many as it may
}

// overlap is how far back a read goes once more, in µs. Requests carry the time at which
// their publication began, by the clock that the publisher heard last: they arrive
// some round trips later. One that arrives later still is lost, and made again an
// interval later; each tick of overlap is as much to read again, by every node, for
// nothing. Where the store has parts, their clocks differ as well. An account
// remembers the newest request that it has followed.
func (r *reclaimer) overlap() int64 {
	overlap := 100*time.Millisecond + 4*r.s.cfg.StoreTimeout
	if len(r.s.link.shards) > 1 {
		overlap += time.Second
	}
	return int64(overlap / time.Microsecond)
}

const (
	mostMarks     = 128 // published per tick
	mostMarksRead = 256 // read at once
)

// request publishes a request with the next tick. The caller holds the account's mu.
func (r *reclaimer) request(a *Account, cost int64, paid bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.requests) < mostMarks {
		r.requests = append(r.requests, slice.Mark{Account: scarceID(a.limiter().name, a.name), Cost: cost, Paid: paid})
	}
}

// exchange publishes this node's requests and, if it holds slices, follows the others'. It
// blocks on the store and is called from one goroutine at a time.
func (r *reclaimer) exchange(ctx context.Context, holding bool) {
	r.mu.Lock()
	requests := r.requests
	r.requests = nil
	r.mu.Unlock()
	clock := r.s.Now()/1000 + r.clock.Load()
	for i := range requests {
		requests[i].At = clock
	}
	if len(requests) > 0 {
		if err := r.s.store.Mark(ctx, requests); err != nil {
			r.errors.Add(1)
		}
	}
	if holding {
		r.follow(ctx, clock)
	}
}

// follow reads the others' requests.
func (r *reclaimer) follow(ctx context.Context, clock int64) {
	since := min(r.since, clock) - r.overlap()
	if r.crowded {
		since = r.since // there is more than one read returns
	}
	read, err := r.s.store.Marks(ctx, since, mostMarksRead)
	if err != nil {
		r.errors.Add(1)
		return
	}
	r.since, r.crowded = clock, len(read) == mostMarksRead
	var unpaid []slice.Mark
	for _, m := range read {
		r.since = m.At // they come in the order of time
		if r.release(m, false) {
			unpaid = append(unpaid, m)
		}
	}
	r.claim(ctx, unpaid)
	r.s.link.batcher.Flush()
}

// release follows a request; unpaid says that this node would, and its own requests have
// not paid for it.
func (r *reclaimer) release(m slice.Mark, claimed bool) (unpaid bool) {
	if a := r.s.byScarceID(m.Account); a != nil {
		a.update(func(s *key.State, t *key.Step) {
			s.Release(t, m, claimed)
			unpaid = t.Unpaid
		})
	}
	return unpaid
}

// claim takes what others' requests have paid for a return, and follows those requests.
func (r *reclaimer) claim(ctx context.Context, marks []slice.Mark) {
	if len(marks) == 0 {
		return
	}
	claimed, err := r.s.store.Claim(ctx, marks)
	if err != nil {
		r.errors.Add(1)
		return
	}
	for i, m := range marks {
		if claimed[i] {
			r.release(m, true)
		}
	}
}

// scarceID names an account among all limiters of the service; the length makes it
// unambiguous. byScarceID is its inverse on this node.
func scarceID(limiter, name string) string {
	return strconv.Itoa(len(limiter)) + ":" + limiter + ":" + name
}

func (s *Syncer) byScarceID(id string) *Account {
	length, rest, ok := strings.Cut(id, ":")
	n, err := strconv.Atoi(length)
	if !ok || err != nil || n < 0 || n >= len(rest) || rest[n] != ':' {
		return nil
	}
	l := s.limiter(rest[:n])
	if l == nil {
		return nil
	}
	a, _ := l.table.Load(rest[n+1:])
	return a
}
