package tests_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/hybridlimit/hybrid"
)

// A charge is noticed though floors serve the key: the next request asks Redis.
func TestAChargeIsNoticedBehindTheFloor(t *testing.T) {
	for _, accuracy := range []hybrid.Accuracy{hybrid.Exact, hybrid.Balanced} {
		for _, charge := range []int{8999, 99} { // more than the floor holds, and less
			t.Run(fmt.Sprint(accuracy, " ", charge), func(t *testing.T) {
				story(t, func(w *world) {
					limit := hybrid.PerMinute(20_000)
					n := w.node(hybrid.Options{})
					l := n.limiter("api", limit, hybrid.LimiterOptions{Accuracy: accuracy})
					time.Sleep(2 * time.Minute) // the floor is full
					used := 0
					for range 50 {
						r := allow(t, l, "k", 1)
						if used > 0 && r.Path == hybrid.PathFloor {
							t.Fatalf("a floor admits beside a charge: %+v", r)
						}
						if r.Allowed {
							if err := l.Charge("k", int64(charge)); err != nil {
								t.Error(err)
							}
							used += 1 + charge
						}
						time.Sleep(2 * time.Millisecond)
					}
					if used > 27_000 {
						t.Errorf("%d used of 20,000", used)
					}
				})
			})
		}
	}
}

// On one server alone, Remaining and ResetAfter are what Redis and this node know, whichever path
// decides: never more than a perfect limiter would have, and what Peek says.
func TestRemainingOnOneServer(t *testing.T) {
	for _, c := range []struct {
		limit    hybrid.Limit
		accuracy hybrid.Accuracy
		gap      time.Duration
	}{
		{hybrid.PerMinute(100), hybrid.Balanced, 10 * time.Millisecond},
		{hybrid.PerMinute(100), hybrid.Strict, 10 * time.Millisecond},
		{hybrid.PerMinute(100), hybrid.Exact, 10 * time.Millisecond},
		{hybrid.PerMinute(10), hybrid.Strict, time.Second},
		{hybrid.PerHour(1000), hybrid.Balanced, 5 * time.Millisecond},
		{hybrid.PerDay(5000), hybrid.Balanced, 20 * time.Millisecond},
		{hybrid.PerSecond(1000), hybrid.Balanced, 2 * time.Millisecond},
	} {
		t.Run(c.limit.String()+" "+c.accuracy.String(), func(t *testing.T) {
			story(t, func(w *world) {
				n := w.node(hybrid.Options{})
				l := n.limiter("api", c.limit, hybrid.LimiterOptions{Accuracy: c.accuracy})
				time.Sleep(200 * time.Second)
				rate := float64(c.limit.Count()) / c.limit.Period().Seconds()
				burst := float64(c.limit.Burst())
				ideal, at := burst, time.Now()
				for i := range min(int(burst)*9/10, 300) {
					time.Sleep(c.gap)
					r := allow(t, l, "k", 1)
					if !r.Allowed {
						t.Fatalf("request %d denied: %+v", i, r)
					}
					ideal = min(ideal+rate*time.Since(at).Seconds(), burst) - 1
					at = time.Now()
					slack := 1 + rate*0.12 + 1 // rounding, and a tick
					if float64(r.Remaining) > ideal+slack {
						t.Fatalf("request %d by %v: %d remain, a perfect limiter has %.1f", i, r.Path, r.Remaining, ideal)
					}
					if p, err := l.Peek(ctx, "k"); err != nil || !near(float64(p.Remaining), float64(r.Remaining), slack) {
						t.Fatalf("request %d by %v: %d remain, Peek says %d, %v", i, r.Path, r.Remaining, p.Remaining, err)
					}
					if byRemaining := (burst - float64(r.Remaining)) / rate; !near(r.ResetAfter.Seconds(), byRemaining, slack/rate) {
						t.Fatalf("request %d by %v: reset after %v, by %d remaining it is %.2f s", i, r.Path, r.ResetAfter, r.Remaining, byRemaining)
					}
				}
			})
		})
	}
}

// AllowAll shows the limit that is truly the tightest.
func TestAllowAllShowsTheTightest(t *testing.T) {
	story(t, func(w *world) {
		n := w.node(hybrid.Options{})
		minute := n.limiter("minute", hybrid.PerMinute(100), hybrid.LimiterOptions{})
		day := n.limiter("day", hybrid.PerDay(10_000), hybrid.LimiterOptions{})
		time.Sleep(200 * time.Second)
		for range 5 {
			r := n.all(hybrid.Check{Limiter: day, Key: "k"}, hybrid.Check{Limiter: minute, Key: "k"})
			if r.Limit != 100 {
				t.Errorf("shows %d of %d", r.Remaining, r.Limit)
			}
		}
	})
}

// Peek answers as Allow would after an outage under FailOpen.
func TestPeekAfterAnOutage(t *testing.T) {
	story(t, func(w *world) {
		n := w.node(hybrid.Options{})
		l := n.limiter("api", hybrid.PerMinute(100), hybrid.LimiterOptions{Accuracy: hybrid.Strict, OnFailure: hybrid.FailOpen})
		allow(t, l, "k", 1)
		n.link.Cut(true)
		for range 300 {
			allow(t, l, "k", 1)
			time.Sleep(5 * time.Millisecond)
		}
		n.link.Cut(false)
		time.Sleep(3 * time.Second)
		for range 20 {
			p, err := l.Peek(ctx, "k")
			if err != nil {
				t.Fatal(err)
			}
			if r := allow(t, l, "k", 1); r.Allowed != p.Allowed {
				t.Errorf("Peek says %+v, Allow %+v", p, r)
			}
			time.Sleep(700 * time.Millisecond)
		}
	})
}

// Refunds are requests: under Exact a request and its refund are two operations at most.
func TestRefundsPayForTheirOperations(t *testing.T) {
	story(t, func(w *world) {
		n := w.node(hybrid.Options{})
		l := n.limiter("api", hybrid.PerMinute(100), hybrid.LimiterOptions{Accuracy: hybrid.Exact})
		for range 200 {
			if allow(t, l, "k", 1).Allowed {
				_ = l.Refund("k", 1)
			}
			time.Sleep(300 * time.Millisecond)
		}
		if ops := n.Stats().Total.Operations; ops > 400 {
			t.Errorf("%d operations for 200 requests and as many refunds", ops)
		}
	})
}
