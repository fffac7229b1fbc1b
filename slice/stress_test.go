package slice

import (
	"fmt"
	"math"
	"math/rand/v2"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
)

// All operations of one cell at once, as the node does them: takes from many
// goroutines, the clock on its own, everything else under the account's lock,
// which is free while a settle is in flight. At the end the books close, to the
// token. Run it with -race.
func TestAllOperationsAtOnce(t *testing.T) {
	for name, size := range map[string]sizes{
		"small slices":          {grant: 200, costs: []int64{1, 2, 3, 7}},
		"at the word's limits":  {grant: MaxSlice, costs: []int64{1, 1 << 31, MaxSlice - 1, MaxSlice, 1 << 32, math.MaxInt64}},
		"few tokens, many take": {grant: 4, costs: []int64{1}},
	} {
		t.Run(name, func(t *testing.T) {
			s := newStress(size, sound)
			s.run(20_000)
			for _, err := range s.faults() {
				t.Error(err)
			}
			for what, n := range s.did {
				if n == 0 {
					t.Errorf("no %v in the whole run", deed(what))
				}
			}
			if s.admitted.Load() <= 0 || s.refused.Load() == 0 || s.crossed.Load() == 0 {
				t.Errorf("%d admitted, %d refused, %d crossed", s.admitted.Load(), s.refused.Load(), s.crossed.Load())
			}
		})
	}
}

// sizes are what a stress is made of.
type sizes struct {
	grant int64 // the largest
	costs []int64
}

// operations are what is put under stress; tests of the test put flaws in.
type operations struct {
	take     func(*Cell, int64, *Watermark) (left int64, ok bool)
	report   func(*Lease, *Cell, int64) Usage
	ran      func(*Lease, *Cell, Grant, Tick) (lost, spent int64)
	giveBack func(*Lease, *Cell, int64, *Watermark) bool
	pass     func(*Watermark, Tick)
}

var sound = operations{(*Cell).Take, (*Lease).Report, (*Lease).Ran, (*Lease).Return, (*Watermark).Pass}

// deed is something that must have happened in a run.
type deed int

const (
	renewed deed = iota
	dropped
	notRun
	lostHolding
	lostReturning
	lapsedAlive
	lapsedInDoubt
	expired
	gaveBack
	deeds
)

func (d deed) String() string {
	return [deeds]string{"renewal", "drop", "settle that did not run", "lost renewal", "lost return",
		"lapse", "lapse of a marked lease", "expiry", "refund"}[d]
}

// stress is one cell under stress, with books of what became of its tokens.
type stress struct {
	sizes
	do   operations
	cell Cell
	dead Watermark
	stop atomic.Bool

	admitted, refused, crossed atomic.Int64 // admitted in tokens, less what was given back

	// An even era: the lease may be alive. An odd one: the watermark has passed it.
	era     atomic.Uint64
	undead  atomic.Int64 // takes that began and ended in one odd era, and got tokens
	strange atomic.Int64 // readings that no sequence of operations explains

	mu       sync.Mutex
	lease    Lease
	epoch    int64
	expiry   Tick // of the lease
	flying   bool // a settle is in flight
	granted  int64
	reported int64 // spent, as the store was told
	untold   int64 // spent, as the store will never be told
	returned int64
	lapsed   int64 // tokens that went with a lease
	largest  int64 // cost, as it was read
	did      [deeds]int
}

// newStress has its clock shortly before it wraps.
func newStress(size sizes, do operations) *stress {
	s := &stress{sizes: size, do: do}
	s.dead.Pass(math.MaxInt32) // by steps: a tick is after another only within half of the circle
	s.dead.Pass(math.MaxUint32 - 2000)
	return s
}

// run lets takers work and everybody else meddle with them until they are done.
func (s *stress) run(takes int) {
	var takers, others sync.WaitGroup
	for g := range 4 {
		takers.Go(func() { s.takeAll(rand.New(rand.NewPCG(1, uint64(g))), takes) })
	}
	for g, meddle := range []func(*rand.Rand){s.tick, s.tick, s.expire, s.settle, s.settle, s.lapse, s.refund, s.look} {
		others.Go(func() {
			for r := rand.New(rand.NewPCG(2, uint64(g))); !s.stop.Load(); runtime.Gosched() {
				meddle(r)
			}
		})
	}
	takers.Wait()
	s.stop.Store(true)
	others.Wait()
	s.close()
}

// takeAll is one of those who take, until it has tried so often and everything
// that can happen has, or there is no more patience.
func (s *stress) takeAll(r *rand.Rand, takes int) {
	for i := 0; i < takes || i < 200*takes && !s.happened(); i++ {
		n := s.costs[r.IntN(len(s.costs))]
		era := s.era.Load()
		left, ok := s.do.take(&s.cell, n, &s.dead)
		if !ok {
			s.refused.Add(1)
			runtime.Gosched() // somebody has to fill it
			continue
		}
		s.admitted.Add(n)
		if era%2 == 1 && s.era.Load() == era {
			s.undead.Add(1)
		}
		if left < 0 || left > MaxSlice-n {
			s.strange.Add(1)
		}
		if s.cell.Crossed(left, n) {
			s.crossed.Add(1)
		}
	}
}

func (s *stress) happened() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, n := range s.did {
		if n == 0 {
			return false
		}
	}
	return s.crossed.Load() > 0
}

// tick is a clock; there may be several.
func (s *stress) tick(*rand.Rand) { s.do.pass(&s.dead, s.dead.Now()+1) }

// expire is the timer of the lease. From then on no take may begin to succeed.
func (s *stress) expire(r *rand.Rand) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.lease.Holds() || r.IntN(8) > 0 {
		return
	}
	s.do.pass(&s.dead, s.expiry)
	if s.era.Load()%2 == 0 {
		s.era.Add(1)
	}
	s.did[expired]++
}

// settle reports and, when the lock was free for a while, learns the outcome.
func (s *stress) settle(r *rand.Rand) {
	s.mu.Lock()
	if s.flying {
		s.mu.Unlock()
		return
	}
	s.flying = true
	keep := r.Int64N(2) * r.Int64N(s.grant+1)
	u := s.do.report(&s.lease, &s.cell, keep)
	s.mu.Unlock()

	runtime.Gosched()

	s.mu.Lock()
	defer s.mu.Unlock()
	s.flying = false
	s.end(u, r)
	s.cell.SetLow(r.Int64N(s.grant + 1))
	s.largest = max(s.largest, s.cell.LargestCost())
}

// end is the outcome of a settle. The caller holds mu.
func (s *stress) end(u Usage, r *rand.Rand) {
	spoken := u.Tag != Tag{}
	switch x := r.IntN(16); {
	case x == 0:
		s.lease.NotRun(&s.cell)
		s.did[notRun]++
	case x == 1:
		s.lost(u)
	case x == 2 && spoken:
		s.drop(u)
	case s.lease.InDoubt():
		s.do.ran(&s.lease, &s.cell, Grant{}, 0) // it carried needs alone
	default:
		s.reported += u.Spent
		s.returned += u.Returned
		s.grantTo(u.Held, Grant{Granted: 1 + r.Int64N(s.grant)}, r)
		s.did[renewed]++
	}
}

// grantTo ends a settle with a grant for a cell that was filled with base. The
// caller holds mu.
func (s *stress) grantTo(base int64, g Grant, r *rand.Rand) {
	if s.era.Load()%2 == 1 {
		s.era.Add(1) // before the cell comes to life
	}
	s.epoch++
	g.Tag = Tag{Epoch: s.epoch}
	s.expiry = s.dead.Now() + 1 + Tick(r.IntN(500))
	s.do.ran(&s.lease, &s.cell, g, s.expiry)
	s.granted += int64(s.lease.base) - base // a full cell is given less
}

// lost: tokens that were held are used up in silence, others are with the store.
func (s *stress) lost(u Usage) {
	marked := s.lease.InDoubt()
	s.lease.Lost()
	s.untold += u.Spent
	s.returned += u.Returned
	switch {
	case marked || u.Tag == Tag{}:
	case u.Held > 0:
		s.did[lostHolding]++
	default:
		s.did[lostReturning]++
	}
}

// drop: the store has forgotten the lease; what it was told is void.
func (s *stress) drop(u Usage) {
	s.untold += u.Spent
	s.lapsed += u.Returned
	s.forget()
	s.grantTo(0, Grant{Dropped: true, Granted: s.grant / 2}, rand.New(rand.NewPCG(3, uint64(s.epoch))))
	s.did[dropped]++
}

// forget takes out what is about to go with its lease, in one step with
// counting it. The caller holds mu.
func (s *stress) forget() {
	tokens := s.cell.withhold(0)
	s.lapsed += tokens
	s.untold += int64(s.lease.base) - tokens
}

// lapse gives a lease up: a marked one when it is over, others at any time.
func (s *stress) lapse(r *rand.Rand) {
	s.mu.Lock()
	defer s.mu.Unlock()
	marked := s.lease.InDoubt()
	if s.flying || !s.lease.Holds() || marked && !s.cell.Expired(&s.dead) || !marked && r.IntN(16) > 0 {
		return
	}
	s.forget()
	s.lease.Lapse(&s.cell)
	if marked {
		s.did[lapsedInDoubt]++
	} else {
		s.did[lapsedAlive]++
	}
}

// refund gives back what was taken, also while a settle is in flight.
func (s *stress) refund(r *rand.Rand) {
	s.mu.Lock()
	defer s.mu.Unlock()
	n := min(s.costs[r.IntN(len(s.costs))], MaxSlice)
	if s.do.giveBack(&s.lease, &s.cell, n, &s.dead) {
		s.admitted.Add(-n)
		s.did[gaveBack]++
	}
}

// look reads what anybody may read, and what the lock's holder may.
func (s *stress) look(*rand.Rand) {
	before := s.dead.Now()
	if tokens, alive := s.cell.Tokens(), s.cell.Alive(&s.dead); tokens > MaxSlice || alive > MaxSlice {
		s.strange.Add(1)
	}
	s.cell.Expired(&s.dead)
	s.cell.Left(0)
	if before.After(s.dead.Now()) {
		s.strange.Add(1)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.lease.Unreported(&s.cell) < 0 || s.lease.InDoubt() && !s.lease.Holds() {
		s.strange.Add(1)
	}
}

// close counts what is left.
func (s *stress) close() {
	s.largest = max(s.largest, s.cell.LargestCost())
	s.forget()
}

// faults are the ways in which the books do not close.
func (s *stress) faults() (bad []error) {
	admitted := s.admitted.Load()
	if spent := s.reported + s.untold; spent != admitted {
		bad = append(bad, fmt.Errorf("admitted %d, but the lease knows of %d: %d reported, %d not", admitted, spent, s.reported, s.untold))
	}
	if sum := admitted + s.returned + s.lapsed; sum != s.granted {
		bad = append(bad, fmt.Errorf("granted %d, but admitted %d + returned %d + lapsed %d = %d", s.granted, admitted, s.returned, s.lapsed, sum))
	}
	if n := s.undead.Load(); n > 0 {
		bad = append(bad, fmt.Errorf("%d takes got tokens after their expiry", n))
	}
	if n := s.strange.Load(); n > 0 {
		bad = append(bad, fmt.Errorf("%d readings that make no sense", n))
	}
	if want := s.largestThatFits(); s.largest != want {
		bad = append(bad, fmt.Errorf("the largest cost was read as %d, want %d", s.largest, want))
	}
	return bad
}

// largestThatFits is the largest cost that was offered and that a cell can serve.
func (s *stress) largestThatFits() (largest int64) {
	for _, n := range s.costs {
		if n <= s.grant {
			largest = max(largest, n)
		}
	}
	return largest
}
