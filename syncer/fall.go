package syncer

import (
	"hash/fnv"
	"math"
	"time"

	"github.com/hybridlimit/hybrid/precheck"
)

// Policy is what a request is told while the store does not answer.
type Policy uint8

// The failure policies.
const (
	FailLocal  Policy = iota // the node's fair share of the limit, from a local bucket
	FailOpen                 // admitted
	FailClosed               // denied
)

// ProbeInterval is when a denial by policy may be worth a retry: the store is
// probed about that often.
const ProbeInterval = time.Second

// fall decides a request by the limiter's failure policy. What it admits is
// charged with the account's next settle. The caller holds mu.
func (a *Account) fall(n, now int64) Verdict {
	v := Verdict{Source: FromPolicy}
	c := a.inContact(now)
	a.turnWindow(a.Plan(), now)
	switch a.limiter().policy {
	case FailOpen:
		v.Allowed = true
		c.fallback += float64(n) // charged up to the node's share: see charge
	case FailClosed:
		v.Retry = ProbeInterval
	default:
		v.Allowed, v.Retry = a.fallLocal(n, now)
	}
	a.limiter().Counts.policy(v.Allowed)
	if !v.Allowed {
		c.deny(1, now)
	}
	if !c.inflight {
		a.limiter().s.agenda.ensure(a, now+a.limiter().s.dice.jitter(int64(ProbeInterval)))
	}
	return v
}

// fallLocal admits from the node's fair share.
func (a *Account) fallLocal(n, now int64) (bool, time.Duration) {
	size := a.fallbackSize(now)
	if float64(n) > size.Cap {
		return false, ProbeInterval
	}
	c := a.contact()
	if c.bucketAt == 0 {
		c.bucket.Set(a.fallbackStart(size, now), now)
		c.bucketAt = max(now, 1)
	}
	if !c.bucket.Take(now, n, size) {
		return false, c.bucket.Wait(now, n, size)
	}
	c.fallback += float64(n)
	return true, 0
}

// shrinkMemory is how long a fleet that has shrunk keeps its shares: nodes that
// lose the store one after the other vanish for those that still have it, and go on
// admitting their own.
const shrinkMemory = int64(10 * time.Minute)

// fleetLately returns the largest fleet of the last ten minutes.
func (a *Account) fleetLately(now int64) float64 {
	return float64(a.limiter().history.Largest(now - shrinkMemory))
}

// fallbackSize returns the node's share of the limit: B/M and r/M, both halved
// for a window, where a full bucket and its refill add up (half a token more of an
// odd quota is never a whole one). A share of less than one token is no use to
// anybody: then as many nodes as there are whole tokens get one each, chosen by a
// hash so that each key has other nodes.
func (a *Account) fallbackSize(now int64) precheck.Size {
	plan := a.Plan()
	whole := precheck.Size{Cap: float64(plan.Rule.Burst), Rate: plan.ratePerNano()}
	if plan.Rule.Window > 0 {
		whole = whole.Times(0.5)
		whole.Cap = math.Ceil(whole.Cap)
	}
	m := a.fleetLately(now)
	if nodes := math.Floor(whole.Cap); nodes < m {
		if nodes < 1 || float64(a.rank()) >= nodes {
			return precheck.Size{}
		}
		m = nodes
	}
	size := whole.Over(m)
	size.Cap = math.Floor(size.Cap)
	return size
}

// fallbackStart is what the bucket holds when an outage begins: the share of
// what was free when the store last spoke, and all of it for a key that it was
// never asked about, or so long ago that it would have filled since. Where a
// bucket that was not full has been evicted nobody can say whose it was: every
// later one starts as if it had been that.
func (a *Account) fallbackStart(size precheck.Size, now int64) float64 {
	start := size.Cap
	if !a.full(now) {
		start = min(start, float64(a.toldFree())/a.fleetLately(now))
	}
	if forgotten := a.limiter().forgotten.Load(); forgotten != 0 {
		start = min(start, size.Rate*float64(now-forgotten))
	}
	return start
}

// fallbackLack returns what the bucket lacks, which is what the account may be
// charged of its admissions: the rest has been earned again.
func (a *Account) fallbackLack(now int64) float64 {
	return a.contact().bucket.Lack(now, a.fallbackSize(now))
}

// rank returns the place of this node among the live ones for this key, by a
// hash of member and key; beyond all places if the fleet was never heard of.
func (a *Account) rank() int {
	roster := a.limiter().roster.Load()
	if roster == nil {
		return math.MaxInt
	}
	own, before := a.weigh(a.limiter().s.cfg.Member), 0
	for _, member := range *roster {
		if a.weigh(member) < own {
			before++
		}
	}
	return before
}

func (a *Account) weigh(member string) uint64 {
	h := fnv.New64a()
	h.Write([]byte(member))
	h.Write([]byte{0})
	h.Write([]byte(a.key))
	return mix(h.Sum64())
}

// mix spreads each bit over all (the finalizer of MurmurHash3). Without it the
// members' order would hardly depend on a short key, which FNV hashes last.
func mix(x uint64) uint64 {
	x = (x ^ x>>33) * 0xff51afd7ed558ccd
	x = (x ^ x>>33) * 0xc4ceb9fe1a85ec53
	return x ^ x>>33
}
