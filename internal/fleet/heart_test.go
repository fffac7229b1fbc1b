package fleet

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hybridlimit/hybrid/slice"
)

const syncInterval = 100 * time.Millisecond

// pulse is a heart in virtual time, on a store that a test sets.
type pulse struct {
	*Heart
	health health
	fleets []*Fleet
	start  time.Time

	beat         func(fleets []*slice.Fleet) // nil: the node registers
	probe        func(ctx context.Context) error
	calls        []int // fleets of each heartbeat
	probes       int
	roundTrips   []time.Duration
	unregistered []string
}

func story(t *testing.T, limiters int, tell func(p *pulse)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		p := &pulse{start: time.Now()}
		for i := range limiters {
			f := &Fleet{}
			f.Init(fmt.Sprint("l", i), "me", 0, 0)
			p.fleets = append(p.fleets, f)
		}
		p.Heart = NewHeart(Config{
			Member: "me", SyncInterval: syncInterval, Timeout: 20 * time.Millisecond, CallTimeout: time.Second,
			Now: p.now, Random: func() float64 { return 0.5 }, Background: func(task func()) { go task() },
			Fleets:    func() []*Fleet { return p.fleets },
			Heartbeat: p.heartbeat,
			Probe: func(ctx context.Context) error {
				p.probes++
				if p.probe == nil {
					return nil
				}
				return p.probe(ctx)
			},
			Health:       &p.health,
			Answered:     func(roundTrip int64) { p.roundTrips = append(p.roundTrips, time.Duration(roundTrip)) },
			Unregistered: func(limiter string, err error) { p.unregistered = append(p.unregistered, limiter+": "+err.Error()) },
		})
		tell(p)
	})
}

func (p *pulse) now() int64 { return int64(time.Since(p.start)) }

func (p *pulse) heartbeat(_ context.Context, member string, ttl time.Duration, fleets []*slice.Fleet) {
	p.calls = append(p.calls, len(fleets))
	if p.beat != nil {
		p.beat(fleets)
		return
	}
	for _, f := range fleets {
		if member != "me" || ttl != TTL {
			f.Err = fmt.Errorf("member %s for %v", member, ttl)
		}
		f.Members = []string{"me", "other"}
	}
}

// run is the node's loop for a while: it looks each 10 ms.
func (p *pulse) run(span time.Duration) {
	for end := p.now() + int64(span); p.now() < end; time.Sleep(10 * time.Millisecond) {
		p.Beat(p.now())
		synctest.Wait()
	}
}

// sleep lets time pass, and all that happens in it be seen.
func sleep(d time.Duration) {
	time.Sleep(d)
	synctest.Wait()
}

// all makes every heartbeat fail.
func (p *pulse) all(err error, refused bool) {
	p.beat = func(fleets []*slice.Fleet) {
		for _, f := range fleets {
			f.Err, f.Refused = err, refused
		}
	}
}

func TestAHeartbeatASecond(t *testing.T) {
	story(t, 1, func(p *pulse) {
		p.run(10 * time.Second)
		equal(t, "heartbeats in 10 s", len(p.calls), 10)
		equal(t, "size", p.fleets[0].Size(), 2)
		equal(t, "answers", p.health.answered, 10)
		equal(t, "round trips", len(p.roundTrips), 10)
		equal(t, "probes", p.probes, 0)
		if w := p.Wait(p.now()); w < 0 || w > int64(time.Second) {
			t.Errorf("the next in %v", time.Duration(w))
		}
		p.Soon()
		p.run(10 * time.Millisecond)
		equal(t, "heartbeats when one is wanted soon", len(p.calls), 11)
	})
}

// The breaker counts the time of each call, so that no call carries too much.
func TestManyFleetsTakeSeveralCalls(t *testing.T) {
	story(t, 70, func(p *pulse) {
		p.run(10 * time.Millisecond)
		equal(t, "calls", fmt.Sprint(p.calls), fmt.Sprint([]int{32, 32, 6}))
		for _, f := range p.fleets {
			equal(t, "size of "+f.limiter, f.Size(), 2)
		}
	})
}

// While the shard is down each tick probes; the answer that closes the breaker brings a
// heartbeat at once.
func TestADownShardIsProbedEachTick(t *testing.T) {
	story(t, 1, func(p *pulse) {
		p.health.down = true
		p.probe = func(context.Context) error { return errGone }
		p.run(2200 * time.Millisecond)
		equal(t, "probes in 2.2 s", p.probes, 20) // each 110 ms
		equal(t, "heartbeats", len(p.calls), 0)
		equal(t, "failures", len(p.health.failed), 20)
		p.probe = nil
		p.run(100 * time.Millisecond)
		equal(t, "heartbeats when it is back", len(p.calls), 1)
		equal(t, "size", p.fleets[0].Size(), 2)
	})
}

// Probes that hang are not piled up: the more of them, the rarer the next.
func TestProbesThatHangGetRarer(t *testing.T) {
	story(t, 1, func(p *pulse) {
		p.health.down = true
		p.probe = func(context.Context) error { time.Sleep(time.Minute); return errGone }
		p.run(250 * time.Millisecond)
		equal(t, "probes while the first two hang", p.probes, 3)
		p.run(30 * time.Second)
		if p.probes < 20 || p.probes > 40 {
			t.Errorf("%d probes that hang in 30 s", p.probes)
		}
		equal(t, "probes out", int(p.out.Load()), p.probes)
		equal(t, "timeouts", p.health.timedOut, p.probes)
		p.probe = nil
		p.run(2 * time.Second)
		equal(t, "down", p.health.down, false)
		time.Sleep(time.Minute)
	})
}

// A heartbeat that takes longer than requests wait is a failure for the breaker, and an
// answer when it comes after all.
func TestASlowHeartbeatTimesOut(t *testing.T) {
	story(t, 1, func(p *pulse) {
		p.beat = func(fleets []*slice.Fleet) { time.Sleep(300 * time.Millisecond) }
		p.Beat(p.now())
		sleep(100 * time.Millisecond)
		equal(t, "timeouts", p.health.timedOut, 1)
		sleep(300 * time.Millisecond)
		equal(t, "answers", p.health.answered, 1)
		equal(t, "round trip", p.roundTrips[0], 300*time.Millisecond)
		p.beat = func(fleets []*slice.Fleet) {
			time.Sleep(3 * time.Second)
			fleets[0].Members = []string{"a", "b", "c", "me"}
		}
		p.Soon()
		p.Beat(p.now())
		sleep(1100 * time.Millisecond)
		equal(t, "timeouts", p.health.timedOut, 2)
		equal(t, "failures beside the timeout", len(p.health.failed), 0)
		sleep(3 * time.Second)
		equal(t, "answers of a call that was given up", p.health.answered, 1)
		equal(t, "size", p.fleets[0].Size(), 0)
	})
}

// What a heartbeat's errors say of the shard: nothing at all is a failure, one registry
// that is unreadable is not, and a refusal is neither a failure nor an answer.
func TestErrorsOfHeartbeats(t *testing.T) {
	for _, c := range []struct {
		name             string
		beat             func(fleets []*slice.Fleet)
		answered, failed int
	}{
		{"all fail", func(f []*slice.Fleet) { f[0].Err, f[1].Err = errGone, errGone }, 0, 1},
		{"one fails", func(f []*slice.Fleet) { f[0].Err, f[1].Members = errGone, []string{"me"} }, 1, 0},
		{"one alone", func(f []*slice.Fleet) { f[0].Err, f[0].Lone, f[1].Err = errGone, true, errGone }, 1, 0},
		{"refused", func(f []*slice.Fleet) { f[0].Err, f[0].Refused, f[1].Err, f[1].Refused = errGone, true, errGone, true }, 0, 0},
	} {
		story(t, 2, func(p *pulse) {
			p.beat = c.beat
			p.run(10 * time.Millisecond)
			equal(t, c.name+": answered", p.health.answered, c.answered)
			equal(t, c.name+": failed", len(p.health.failed), c.failed)
		})
	}
}

// A store that executes settles and refuses registrations is not down. It is reported,
// once for each row of refusals.
func TestRefusedHeartbeatsAreReported(t *testing.T) {
	story(t, 1, func(p *pulse) {
		settling := func(span time.Duration) {
			for range int(span / time.Second) {
				p.health.settledAt = p.now()
				p.run(time.Second)
			}
		}
		for row := 1; row <= 2; row++ {
			p.all(errGone, true)
			settling(20 * time.Second)
			equal(t, "reports", len(p.unregistered), row)
			p.beat = nil
			settling(3 * time.Second)
		}
		equal(t, "report", p.unregistered[0], "l0: "+errGone.Error())
		equal(t, "failures", len(p.health.failed), 0)
	})
}
