package slice

import (
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
)

// All operations of one cell at once, as the node does them: takes from many
// goroutines, the clock on its own, everything else under the account's lock.
// At the end the ledger adds up. Run it with -race.
func TestAllOperationsAtOnce(t *testing.T) {
	const life = 50
	var (
		c        Cell
		l        Lease
		dead     Watermark
		mu       sync.Mutex
		admitted atomic.Int64
		granted  int64 // under mu, as the next two
		gone     int64 // returned
		reported int64
		work     sync.WaitGroup
		clock    sync.WaitGroup
		stop     atomic.Bool
	)
	for g := range 4 {
		work.Go(func() {
			for range 20000 {
				if left, ok := c.Take(int64(g%3)+1, &dead); ok {
					admitted.Add(int64(g%3) + 1)
					c.Crossed(left, int64(g%3)+1)
				}
			}
		})
	}
	clock.Go(func() {
		for now := Tick(0); !stop.Load(); now++ {
			dead.Pass(now)
		}
	})
	settle := func(r *rand.Rand, epoch int64) {
		mu.Lock()
		defer mu.Unlock()
		u := l.Report(&c, r.Int64N(100))
		if r.IntN(4) == 0 {
			l.NotRun(&c)
		} else {
			reported += u.Spent
			gone += u.Returned
			n := r.Int64N(200)
			granted += n
			l.Ran(&c, Grant{Granted: n, Tag: Tag{Epoch: epoch}}, dead.Now()+life)
		}
		c.SetLow(r.Int64N(100))
		c.LargestCost()
	}
	work.Go(func() {
		r := rand.New(rand.NewPCG(1, 2))
		for epoch := range int64(5000) {
			settle(r, epoch+1)
		}
	})
	work.Go(func() {
		for range 5000 {
			mu.Lock()
			if l.GiveBack(&c, 1, &dead) {
				admitted.Add(-1)
			}
			mu.Unlock()
		}
	})
	work.Wait()
	stop.Store(true)
	clock.Wait()
	u := l.Report(&c, 0)
	if spent := reported + u.Spent; spent != admitted.Load() || spent+gone+u.Returned != granted {
		t.Errorf("admitted %d, reported %d, returned %d, granted %d", admitted.Load(), spent, gone+u.Returned, granted)
	}
}
