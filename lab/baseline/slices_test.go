package baseline

import (
	"testing"
	"time"

	"github.com/hybridlimit/hybrid"
)

// A node fetches 1 % at a time: one request in ten waits for it.
func TestSlicesCostOneOperationEach(t *testing.T) {
	inBubble(t, FixedSlices, 2, hybrid.PerMinute(1000), func(r *run) {
		if got := r.burst(0, 1000); got != 1000 {
			t.Errorf("admitted %d", got)
		}
		if c := r.Cost(); c.Operations != 100 || c.Blocked != 100 {
			t.Errorf("1000 requests cost %+v", c)
		}
		// The account has earned one token in these 100 round trips.
		if a := r.ask(1, "k", 2); a.Allowed || !a.Blocked {
			t.Errorf("two more: %+v", a)
		}
	})
}

// Load that hops leaves most of a slice behind on each node that it leaves: here
// one request per node and fill time, which takes ten tokens from the account.
func TestSlicesStrandTokensOnHopping(t *testing.T) {
	for _, limit := range []hybrid.Limit{hybrid.PerMinute(1000), hybrid.Window(1000, time.Minute)} {
		inBubble(t, FixedSlices, 200, limit, func(r *run) {
			admitted := 0
			for node := range 200 {
				admitted += r.burst(node, 1)
			}
			if admitted < 100 || admitted > 102 {
				t.Errorf("%v: %d of 200 admitted, want 100 and what was earned meanwhile", limit, admitted)
			}
		})
	}
}

// A slice ends with its window, or when its account could be full again.
func TestSlicesLapse(t *testing.T) {
	for _, limit := range []hybrid.Limit{hybrid.PerMinute(1000), hybrid.Window(1000, time.Minute)} {
		inBubble(t, FixedSlices, 1, limit, func(r *run) {
			r.burst(0, 1)
			time.Sleep(time.Minute)
			r.burst(0, 1)
			if c := r.Cost(); c.Operations != 2 {
				t.Errorf("%v: %+v", limit, c)
			}
		})
	}
}

// Slices that are spent on top of a full account are too much, by what the
// nodes held; in a window they are not.
func TestSlicesOverAdmitWhatWasHeld(t *testing.T) {
	held := map[hybrid.Limit]float64{hybrid.PerMinute(1000): 19 * 9, hybrid.Window(1000, time.Minute): 0}
	for limit, want := range held {
		inBubble(t, FixedSlices, 20, limit, func(r *run) {
			for node := range 20 {
				r.burst(node, 1)
			}
			time.Sleep(50 * time.Second) // the account is full again, and the slices are still good
			for node := range 20 {
				r.burst(node, 9+190) // what it holds, and whole slices
			}
			if got := r.report().Excess; got < want-10 || got > want+10 {
				t.Errorf("%v: %.0f too many, want about %.0f", limit, got, want)
			}
		})
	}
}

// A cost above a slice is fetched whole, and one above the limit never fits.
func TestSlicesLargeCosts(t *testing.T) {
	inBubble(t, FixedSlices, 1, hybrid.PerMinute(1000), func(r *run) {
		if a := r.ask(0, "k", 600); !a.Allowed {
			t.Error("600 of 1000 was denied")
		}
		if a := r.ask(0, "k", 600); a.Allowed {
			t.Error("1200 of 1000 were admitted")
		}
		if a := r.ask(0, "k", 300); !a.Allowed {
			t.Error("300 of the 400 that are left were denied")
		}
	})
}

// Requests of one node and key share a fetch, whoever sent it, and all have an answer.
func TestSlicesShareAFetch(t *testing.T) {
	inBubble(t, FixedSlices, 1, hybrid.PerMinute(1000), func(r *run) {
		for range 25 {
			r.pending.Go(func() { r.ask(0, "k", 1) })
		}
		r.pending.Wait()
		if c := r.Cost(); c.Operations != 3 || c.Blocked != 25 || r.report().Total != 25 {
			t.Errorf("%+v, %+v", c, r.report())
		}
	})
}
