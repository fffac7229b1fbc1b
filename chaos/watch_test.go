package chaos

import (
	"bytes"
	"context"
	"runtime/pprof"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
)

// late is by how much a control, which only sleeps, woke up too late.
type late struct {
	at, by time.Duration // when it woke, since the run began
}

// control measures how late timers of the length of StoreTimeout are on this
// machine, under this load, all the time: no call can be more punctual.
func control(timeout time.Duration, sleepers int, began time.Time, stop <-chan struct{}) (collect func() []late) {
	var wg sync.WaitGroup
	all := make([][]late, sleepers)
	locks := make([]sync.Mutex, max(1, sleepers/12))
	for i := range all {
		lock := &locks[i%len(locks)]
		wg.Go(func() {
			for {
				from := time.Now()
				timer := time.NewTimer(timeout)
				select {
				case <-stop:
					timer.Stop()
					if by := time.Since(from) - timeout; by > 0 { // it was due, and nobody could tell
						all[i] = append(all[i], late{time.Since(began), by})
					}
					return
				case <-timer.C:
				}
				lock.Lock()
				busy(20 * time.Microsecond)
				lock.Unlock()
				all[i] = append(all[i], late{time.Since(began), max(0, time.Since(from)-timeout)})
			}
		})
	}
	return func() (flat []late) {
		wg.Wait()
		for _, part := range all {
			flat = append(flat, part...)
		}
		return flat
	}
}

// busy works for about as long as a call does when it does not wait. A thread can
// lose its processor then, too, and with it a lock that others wait for.
func busy(d time.Duration) {
	for from := time.Now(); time.Since(from) < d; {
	}
}

// pings measures how late a server itself is, by a connection of its own that
// no fault but the server's can harm. What the machine does to servers on busy
// processors is not the fault under test.
func pings(rdb *redis.Client, began time.Time, stop <-chan struct{}) (collect func() []late) {
	var wg sync.WaitGroup
	var list []late
	wg.Go(func() {
		for {
			from := time.Now()
			_ = rdb.Ping(context.Background()).Err() // that it failed late is all that counts
			list = append(list, late{time.Since(began), time.Since(from)})
			select {
			case <-stop:
				return
			case <-time.After(3 * time.Millisecond):
			}
		}
	})
	return func() []late {
		wg.Wait()
		return list
	}
}

// sample is what a fleet needs at a moment.
type sample struct {
	at          time.Duration
	goroutines  int // of nodes, clients and those who ask
	connections int
}

// watch samples the fleet until stop is closed.
func watch(f *fleet, began time.Time, stop <-chan struct{}) (collect func() []sample) {
	var wg sync.WaitGroup
	var samples []sample
	wg.Go(func() {
		ticker := time.NewTicker(50 * time.Millisecond)
		defer ticker.Stop()
		for {
			select {
			case <-stop:
				return
			case <-ticker.C:
				samples = append(samples, sample{time.Since(began), fleetGoroutines(), f.connections()})
			}
		}
	})
	return func() []sample {
		wg.Wait()
		return samples
	}
}

// fleetLabel marks the goroutines of the fleet: labels are inherited, so that
// those of proxies and servers in the same process are not counted.
var fleetLabel = pprof.Labels("part", "fleet")

// fleetMark is how the label looks in a profile.
const fleetMark = `{"part":"fleet"}`

// asFleet runs start as a part of the fleet: the goroutines that it starts are counted.
func asFleet(start func()) {
	pprof.Do(context.Background(), fleetLabel, func(context.Context) { start() })
}

// fleetGoroutines counts the goroutines of the fleet.
func fleetGoroutines() int { return len(fleetStacks()) }

// fleetStacks returns the stack of each goroutine of the fleet, read from the
// text of the profile, which alone has the labels: records divided by empty
// lines, each with a count, labels and a stack.
func fleetStacks() (stacks []string) {
	var buf bytes.Buffer
	if err := pprof.Lookup("goroutine").WriteTo(&buf, 1); err != nil {
		panic(err) // a buffer takes it
	}
	for record := range strings.SplitSeq(buf.String(), "\n\n") {
		if !strings.Contains(record, fleetMark) {
			continue
		}
		count, stack := 0, ""
		for line := range strings.Lines(record) {
			if fields := strings.Fields(line); len(fields) > 2 && fields[0] == "#" && strings.HasPrefix(fields[1], "0x") {
				stack += " < " + fields[2]
			} else if len(fields) > 1 && fields[1] == "@" {
				count, _ = strconv.Atoi(fields[0])
			}
		}
		for range count {
			stacks = append(stacks, stack)
		}
	}
	return stacks
}

func TestGoroutinesOfTheFleetAreCounted(t *testing.T) {
	before := fleetGoroutines()
	stop := make(chan struct{})
	var wg sync.WaitGroup
	asFleet(func() {
		wg.Go(func() {
			wg.Go(func() { <-stop }) // inherits the label
			<-stop
		})
	})
	wg.Go(func() { <-stop })
	time.Sleep(20 * time.Millisecond)
	if n := fleetGoroutines(); n != before+2 {
		t.Errorf("%d goroutines of the fleet, before %d, want 2 more", n, before)
	}
	close(stop)
	wg.Wait()
}
