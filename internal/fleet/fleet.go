// Package fleet is what a node knows of the live nodes of its limiters. Their number
// divides floors, grants and fallback shares. A [Fleet] is the nodes of one limiter; a
// [Heart] keeps this node's registrations in one shard of the store alive. Neither knows
// of accounts.
//
// Times are nanoseconds of the node's monotonic clock.
package fleet

import (
	"hash/fnv"
	"math"
	"sync/atomic"
	"time"

	"github.com/hybridlimit/hybrid/precheck"
	"github.com/hybridlimit/hybrid/slice"
)

const (
	heartbeatEvery = time.Second

	// TTL is how long a registration lasts in the store.
	TTL = 5 * time.Second

	// A registration is trusted here for less than it lasts in the store, so that a node
	// whose place was given away does not use its floor any more.
	trust = TTL - time.Second
)

// Fleet is the live nodes of one limiter, as this node knows them. Writer: the heartbeat.
// Readers: every request on the slow path.
type Fleet struct {
	// Immutable.
	limiter string
	member  string // this node
	least   int    // the least size that the user has declared

	roster     atomic.Pointer[[]string] // nil: the fleet was never heard of
	floorFrom  atomic.Int64             // ns, floors are earned from then on
	floorUntil atomic.Int64             // ns, the registration is trusted until then
	refusals   atomic.Pointer[refusals] // heartbeats that failed in a row; nil: the last one did not
	history    precheck.History
	fresh      precheck.Fresh
}

// Init says whose fleet it is; it comes before all else. Until the first heartbeat has been
// answered, its size is the least that the user has declared.
func (f *Fleet) Init(limiter, member string, least int, now int64) {
	f.limiter, f.member, f.least = limiter, member, least
	f.history.Set(now, max(least, 1))
}

// Size returns the live nodes as last heard; 0 before that.
func (f *Fleet) Size() int {
	if roster := f.roster.Load(); roster != nil {
		return len(*roster)
	}
	return 0
}

// History returns the fleet's size M over time, which is never below the declared least.
func (f *Fleet) History() *precheck.History { return &f.history }

// Fresh returns the level of floors that were never used.
func (f *Fleet) Fresh() *precheck.Fresh { return &f.fresh }

// FloorFrom returns the moment from which on this node's floors earn: one from before it
// is empty.
func (f *Fleet) FloorFrom() int64 { return f.floorFrom.Load() }

// FloorOpen reports whether this node may use floors of this limiter now.
func (f *Fleet) FloorOpen(now int64) bool {
	return now >= f.floorFrom.Load() && now < f.floorUntil.Load()
}

// LargestSince returns the largest size M that was in force at a moment or after it.
func (f *Fleet) LargestSince(moment int64) int { return f.history.Largest(moment) }

// Rank returns the place of this node among the live ones for a key: 0 is the first. It is
// a rendezvous rank, by a hash of member and key, so that keys differ in which nodes come
// first. Before the first answer it is beyond all places.
func (f *Fleet) Rank(key string) int {
	roster := f.roster.Load()
	if roster == nil {
		return math.MaxInt
	}
	own, before := weight(f.member, key), 0
	for _, member := range *roster {
		if weight(member, key) < own {
			before++
		}
	}
	return before
}

func weight(member, key string) uint64 {
	h := fnv.New64a()
	h.Write([]byte(member))
	h.Write([]byte{0})
	h.Write([]byte(key))
	return mix(h.Sum64())
}

// mix spreads each bit over all (the finalizer of MurmurHash3). Without it the members'
// order would hardly depend on a short key, which FNV hashes last.
func mix(x uint64) uint64 {
	x = (x ^ x>>33) * 0xff51afd7ed558ccd
	x = (x ^ x>>33) * 0xc4ceb9fe1a85ec53
	return x ^ x>>33
}

// joined takes over a heartbeat's answer. The floor of a new registration starts empty
// once it is one TTL old: by then every other node has made room.
func (f *Fleet) joined(answer *slice.Fleet, sentAt, now int64) {
	roster := answer.Members
	f.roster.Store(&roster)
	f.history.Set(now, max(f.least, len(roster), 1))
	lapsed := sentAt > f.floorUntil.Load()
	if answer.Joined || lapsed {
		from := now + int64(TTL)
		f.floorFrom.Store(from)
		f.fresh.Start(from)
	}
	f.floorUntil.Store(sentAt + int64(trust))
}

// refusals is a row of heartbeats of a limiter that failed.
type refusals struct {
	since    int64 // ns, when the first was sent
	count    int
	reported bool
}

const fewRefusals = 5

// refused counts a heartbeat that failed, and returns whether to report it now: once, after
// a few in a row, if the store has executed settles since the first of them. Then it
// is the user's rights or a key of another type, and nothing else would show it.
func (f *Fleet) refused(sentAt int64, health Health) (report bool) {
	row := f.refusals.Load()
	if row == nil || health.Down() {
		row = &refusals{since: sentAt} // an outage has causes of its own
	}
	next := refusals{since: row.since, count: row.count + 1, reported: row.reported}
	report = next.count >= fewRefusals && !next.reported && health.SettledAt() > next.since
	next.reported = next.reported || report
	f.refusals.Store(&next)
	return report
}
