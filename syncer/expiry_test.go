package syncer

import (
	"math/rand/v2"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hybridlimit/hybrid/slice"
)

// clockwork is expiryTimer in virtual time, on a clock that starts at some age.
func clockwork(t *testing.T, age time.Duration, tell func(d *expiryTimer, dead *slice.Watermark)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		start := time.Now().Add(-age)
		dead := new(slice.Watermark)
		d := &expiryTimer{expiredUpTo: dead, now: func() int64 { return int64(time.Since(start)) }}
		tell(d, dead)
		d.stop()
	})
}

func tick(d time.Duration) slice.Tick { return slice.TickAt(int64(d)) }

func waiting(d *expiryTimer) int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return len(d.pending)
}

func TestTheWatermarkPassesInTime(t *testing.T) {
	clockwork(t, 3*time.Millisecond, func(d *expiryTimer, dead *slice.Watermark) {
		d.add(tick(50 * time.Millisecond))
		time.Sleep(46 * time.Millisecond) // the clock shows 49 ms
		synctest.Wait()
		if now := dead.Now(); now != 0 {
			t.Errorf("passed %d one ms early", now)
		}
		time.Sleep(time.Millisecond)
		synctest.Wait()
		if now := dead.Now(); now != 5 {
			t.Errorf("at 50 ms the watermark is %d, want 5", now)
		}
	})
}

// Many leases end in the same 10 ms: one deadline serves them all.
func TestLeasesShareATick(t *testing.T) {
	clockwork(t, 0, func(d *expiryTimer, dead *slice.Watermark) {
		for ms := range 20 {
			d.add(tick(time.Duration(50+ms) * time.Millisecond))
		}
		if waiting(d) != 2 {
			t.Errorf("%d expiryTimer in 20 ms", waiting(d))
		}
		time.Sleep(60 * time.Millisecond)
		synctest.Wait()
		if dead.Now() != 6 || waiting(d) != 0 {
			t.Errorf("watermark %d, %d wait", dead.Now(), waiting(d))
		}
	})
}

// An earlier deadline that is registered later moves the timer forward.
func TestALaterDeadlineDoesNotHideAnEarlierOne(t *testing.T) {
	clockwork(t, 0, func(d *expiryTimer, dead *slice.Watermark) {
		d.add(tick(time.Hour))
		d.add(tick(time.Second))
		d.add(tick(time.Minute))
		for _, at := range []time.Duration{time.Second, time.Minute, time.Hour} {
			time.Sleep(at - time.Duration(d.now()))
			synctest.Wait()
			if dead.Now() != tick(at) {
				t.Errorf("at %v the watermark is %d, want %d", at, dead.Now(), tick(at))
			}
		}
	})
}

// A reply may come when its lease is over: the watermark passes before add
// returns, because the cell can be taken from right after it.
func TestADeadlineOfThePastPassesAtOnce(t *testing.T) {
	clockwork(t, time.Second, func(d *expiryTimer, dead *slice.Watermark) {
		d.add(tick(990 * time.Millisecond))
		if dead.Now() != 99 {
			t.Errorf("the watermark is %d, want 99", dead.Now())
		}
		d.add(tick(1000 * time.Millisecond))
		if dead.Now() != 100 {
			t.Errorf("the watermark is %d, want 100", dead.Now())
		}
		if waiting(d) != 0 {
			t.Errorf("%d wait", waiting(d))
		}
	})
}

func TestStoppedDeadlinesAreSilent(t *testing.T) {
	clockwork(t, 0, func(d *expiryTimer, dead *slice.Watermark) {
		d.add(tick(time.Second))
		d.stop()
		d.add(tick(2 * time.Second))
		time.Sleep(time.Minute)
		synctest.Wait()
		if dead.Now() != 0 {
			t.Errorf("the watermark moved to %d", dead.Now())
		}
	})
}

// After 248 days the ticks wrap; order is kept.
func TestDeadlinesAcrossTheWrap(t *testing.T) {
	age := time.Duration(1<<32-10) * slice.TickLength
	clockwork(t, age, func(d *expiryTimer, dead *slice.Watermark) {
		for quarter := range slice.Tick(4) {
			dead.Pass(quarter << 30) // as old leases have left it
		}
		for _, ms := range []time.Duration{300, 50, 150} {
			d.add(tick(age + ms*time.Millisecond))
		}
		for _, ms := range []time.Duration{50, 150, 300} {
			time.Sleep(age + ms*time.Millisecond - time.Duration(d.now()))
			synctest.Wait()
			if want := tick(age + ms*time.Millisecond); dead.Now() != want {
				t.Errorf("%d ms on the watermark is %d, want %d", ms, dead.Now(), want)
			}
		}
	})
}

// Whatever is registered when: at every moment the watermark is the newest
// deadline that is over.
func TestTheWatermarkIsTheNewestDeadline(t *testing.T) {
	clockwork(t, 0, func(d *expiryTimer, dead *slice.Watermark) {
		random := rand.New(rand.NewPCG(1, 2))
		var all []slice.Tick
		for range 2000 {
			due := slice.TickAt(d.now() + random.Int64N(int64(2*time.Second)))
			d.add(due)
			all = append(all, due)
			time.Sleep(time.Duration(random.Int64N(int64(30 * time.Millisecond))))
			synctest.Wait()
			now, newest := slice.TickAt(d.now()), slice.Tick(0)
			for _, due := range all {
				if !due.After(now) && due.After(newest) {
					newest = due
				}
			}
			if dead.Now() != newest {
				t.Fatalf("at tick %d the watermark is %d, want %d", now, dead.Now(), newest)
			}
		}
	})
}
