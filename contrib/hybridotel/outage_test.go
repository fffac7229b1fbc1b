package hybridotel

import (
	"math"
	"testing"
	"time"

	"github.com/hybridlimit/hybrid"
)

// Redis refuses everything for ten seconds. The metrics show since when, why, who
// decides meanwhile and what that may cost; and then that it is over.
func TestOutageIsSeen(t *testing.T) {
	inBubble(t, func(w *world) {
		r, _ := register(t, w.node)
		limit := hybrid.PerMinute(600)
		local := w.limiter("api", limit, nil)
		open := w.limiter("search", limit, &hybrid.LimiterOptions{Accuracy: hybrid.Exact, OnFailure: hybrid.FailOpen})
		closed := w.limiter("login", limit, &hybrid.LimiterOptions{Accuracy: hybrid.Exact, OnFailure: hybrid.FailClosed})
		askAll := func(span time.Duration) {
			for end := time.Now().Add(span); time.Now().Before(end); time.Sleep(20 * time.Millisecond) {
				for _, l := range []*hybrid.Limiter{local, open, closed} {
					w.ask(l, "k", 1, 0)
				}
			}
		}

		askAll(10 * time.Second)
		well := r.read()
		well.want("store.down", 0)
		well.want("store.outages", 0)
		well.want("fleet.size{limiter=api}", 1)
		well.want("overshoot{limiter=api}", 0.1)
		well.want("overshoot{limiter=search}", 0)
		if lag := well.number("store.sync_lag"); lag > 1.5 {
			t.Errorf("a lag of %v s when all is well", lag)
		}

		w.breakRedis()
		askAll(10 * time.Second)
		out := r.read()
		out.want("store.down", 1)
		out.wantMore("store.outages", 0)
		out.wantMore("store.sync_lag", 8)
		out.want("overshoot{limiter=api}", 1.1)
		out.want("overshoot{limiter=search}", math.Inf(1))
		out.want("overshoot{limiter=login}", 0)
		out.wantMore("requests{limiter=api,path=fallback,result=allowed}", 0)
		out.wantMore("requests{limiter=search,path=fallback,result=allowed}", 300)
		out.wantMore("requests{limiter=login,path=fallback,result=denied}", 300)
		out.wantMore("operation.failures{error.type=reply LOADING}", 0)
		if byCause, byOutcome := out.sum("operation.failures"), out.sum("failed_operations"); byCause != byOutcome {
			t.Errorf("%v operations failed by cause, %v by outcome", byCause, byOutcome)
		}

		w.mendRedis()
		askAll(10 * time.Second)
		back := r.read()
		back.want("store.down", 0)
		back.want("store.outages", out.number("store.outages"))
		back.want("overshoot{limiter=api}", 0.1)
		back.want("overshoot{limiter=search}", 0)
		back.wantMore("requests{limiter=search,path=exact,result=allowed}", out.number("requests{limiter=search,path=exact,result=allowed}"))
		if lag := back.number("store.sync_lag"); lag > 1.5 {
			t.Errorf("a lag of %v s when all is well again", lag)
		}
	})
}
