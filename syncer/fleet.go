package syncer

import (
	"hash/fnv"
	"math"
	"sync/atomic"

	"github.com/hybridlimit/hybrid/precheck"
	"github.com/hybridlimit/hybrid/slice"
)

type fleet struct {
	s          *Syncer
	roster     atomic.Pointer[[]string] // nil: the fleet was never heard of
	floorFrom  atomic.Int64             // ns, floors are earned from then on
	floorUntil atomic.Int64             // ns, the registration is trusted until then
	refusals   atomic.Pointer[refusals] // heartbeats that failed in a row; nil: the last one did not
	history    precheck.History
	fresh      precheck.Fresh
}

func (f *fleet) History() *precheck.History { return &f.history }
func (f *fleet) Fresh() *precheck.Fresh     { return &f.fresh }
func (f *fleet) FloorFrom() int64           { return f.floorFrom.Load() }
func (f *fleet) FloorOpen(now int64) bool {
	return now >= f.floorFrom.Load() && now < f.floorUntil.Load()
}
func (f *fleet) Rank(name string) int {
	roster := f.roster.Load()
	if roster == nil {
		return math.MaxInt
	}
	own, before := weigh(f.s.cfg.Member, name), 0
	for _, member := range *roster {
		if weigh(member, name) < own {
			before++
		}
	}
	return before
}

func weigh(member, name string) uint64 {
	h := fnv.New64a()
	h.Write([]byte(member))
	h.Write([]byte{0})
	h.Write([]byte(name))
	return mix(h.Sum64())
}

func mix(x uint64) uint64 {
	x = (x ^ x>>33) * 0xff51afd7ed558ccd
	x = (x ^ x>>33) * 0xc4ceb9fe1a85ec53
	return x ^ x>>33
}

func (f *fleet) joined(fl *slice.Fleet, sentAt, now int64) {
	roster := fl.Members
	f.roster.Store(&roster)
	f.history.Set(now, max(f.s.cfg.Servers, len(roster), 1))
	lapsed := sentAt > f.floorUntil.Load()
	if fl.Joined || lapsed {
		from := now + int64(memberTTL)
		f.floorFrom.Store(from)
		f.fresh.Start(from)
	}
	f.floorUntil.Store(sentAt + int64(memberTrust))
}

// Fleet returns the live nodes of the limiter as last heard; 0 before that.
func (l *Limiter) Fleet() int {
	roster := l.fleet.roster.Load()
	if roster == nil {
		return 0
	}
	return len(*roster)
}
