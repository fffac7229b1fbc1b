package hybrid

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"
	"time"
)

// inspect looks at a key and expects no error.
func inspect(t *testing.T, l *Limiter, key string) KeyState {
	t.Helper()
	s, err := l.Inspect(ctx, key)
	if err != nil {
		t.Errorf("Inspect: %v", err)
	}
	return s
}

// What is told of a key that is held, then denied.
func TestInspectTellsWhatTheNodeKnows(t *testing.T) {
	limit := Per(6000, 100*time.Second)
	inBubble(t, fleetSetup{nodes: 2, limit: limit, limiter: LimiterOptions{Accuracy: Strict}}, func(f *fleet) {
		l := f.lims[0]
		time.Sleep(10 * time.Second)
		s := inspect(t, l, "k")
		if s.Known || s.Limit != limit || s.Store == nil || s.Store.Free != 6000 || s.ToldFree != 6000 || s.Slice != 0 || s.StoreCause != "" {
			t.Errorf("a new key: %+v", s)
		}
		if n := f.nodes[0].Stats().Total.Keys; n != 0 {
			t.Errorf("looking at a key makes the node remember %d", n)
		}
		for range 1200 { // 20 a second, for a minute
			f.ask(0, "k", 1)
			time.Sleep(50 * time.Millisecond)
		}
		s = inspect(t, l, "k")
		if !s.Known || s.Slice < 1 || s.SliceEnds < 50*time.Second || s.SliceEnds > 2*time.Minute || s.Unsettled || s.InFlight {
			t.Errorf("a key with a slice: %+v", s)
		}
		if math.Abs(s.Demand-20) > 2 {
			t.Errorf("20 tokens a second are %v", s.Demand)
		}
		if s.Store.Lent < s.Slice || s.Store.Used < float64(s.Store.Lent) || s.Store.Used+s.Store.Free != 6000 || s.NextAsk <= 0 {
			t.Errorf("%+v, in Redis %+v", s, *s.Store)
		}
		before := f.state("k", limit)
		for range 5 {
			inspect(t, l, "k")
		}
		if after := f.state("k", limit); after.Used > before.Used || after.Lent != before.Lent {
			t.Errorf("looking changes %+v to %+v", before, after)
		}

		f.exhaust("k", 1)
		for range 100 {
			f.ask(0, "k", 1)
			time.Sleep(10 * time.Millisecond)
		}
		for f.ask(0, "k", 1).Allowed { // what the pace has brought
		}
		s = inspect(t, l, "k")
		if s.DeniedCost != 1 || s.DeniedFor <= 0 || s.DeniedFor > 10*time.Second || !s.Paced || s.DenialRate < 3 || s.NextAsk <= 0 {
			t.Errorf("a key that is used up: %+v", s)
		}
		if !strings.HasPrefix(s.Why, "Denied: ") || !strings.Contains(s.Why, "in slices of other servers, which use them, or return them within two minutes") {
			t.Errorf("why: %s", s.Why)
		}
		if s.ToldFree > 600 || s.ToldFull < 80*time.Second || s.ToldFull > 110*time.Second {
			t.Errorf("told %d free, all in %v", s.ToldFree, s.ToldFull)
		}
	})
}

// What is told of floors: before they are open, while they serve, near the limit.
func TestInspectTellsOfFloors(t *testing.T) {
	limit := Per(1000, 1000*time.Second)
	inBubble(t, fleetSetup{nodes: 1, limit: limit}, func(f *fleet) {
		l := f.lims[0]
		time.Sleep(time.Second)
		if s := inspect(t, l, "k"); !s.FloorWaits || s.Floor != 0 {
			t.Errorf("a node that came just now: %+v", s)
		}
		time.Sleep(10 * time.Minute)
		if s := inspect(t, l, "k"); s.FloorWaits || s.Floor < 50 || s.Known {
			t.Errorf("a key that is new to a node that is not: %+v", s)
		}
		for range 30 {
			f.ask(0, "k", 1)
		}
		s := inspect(t, l, "k")
		if s.Floor < 20 || s.Floor > 71 || s.FloorOff != 0 || s.Owed <= 0 || s.Owed > 31 || !strings.HasPrefix(s.Why, "Allowed: this node's floor") {
			t.Errorf("a floor of 100 of which 30 are used: %+v; %s", s, s.Why)
		}
		for range 900 {
			f.ask(0, "k", 1)
		}
		s = inspect(t, l, "k")
		if s.FloorOff <= 0 || s.Floor != 0 {
			t.Errorf("near the limit: %+v", s)
		}
	})
}

// What is told where Redis is not there, by each policy; and of what is owed.
func TestInspectInAnOutage(t *testing.T) {
	limit := Per(100, 1000*time.Second)
	inBubble(t, single(limit), func(f *fleet) {
		n := f.nodes[0]
		var lims []*Limiter
		for _, policy := range []FailurePolicy{FailLocal, FailOpen, FailClosed} {
			l, err := n.Limiter(policy.String(), limit, &LimiterOptions{Accuracy: Strict, OnFailure: policy})
			if err != nil {
				t.Fatal(err)
			}
			lims = append(lims, l)
		}
		time.Sleep(time.Second)
		f.links[0].Cut(true)
		// Whether the call is on its way when the connection breaks is a matter of luck.
		if s := inspect(t, lims[0], "k"); s.Store != nil || s.StoreDown || s.StoreCause != "timeout" && s.StoreCause != "connection closed" ||
			s.Why != "Undecided: Redis would be asked, and did not answer just now ("+s.StoreCause+"); if it does not, FailLocal allows it." {
			t.Errorf("at the onset: %+v, %s", s, s.Why)
		}
		f.untilDown(0)
		for i, want := range []string{
			"Allowed: Redis does not answer, and under FailLocal 60 tokens are left of this node's share of the limit.",
			"Allowed: Redis does not answer, and FailOpen allows all.",
			"Denied: Redis does not answer, and FailClosed denies all.",
		} {
			for range 40 {
				allow(t, lims[i], "k", 1)
			}
			s := inspect(t, lims[i], "k")
			if s.Store != nil || !s.StoreDown || s.StoreCause != "not sent: Redis does not answer" || s.Why != want {
				t.Errorf("%s: %+v", s.Why, s)
			}
			if want := map[int]float64{0: 40, 1: 40}[i]; s.Fallback != want {
				t.Errorf("%v admitted by the policy, want %v", s.Fallback, want)
			}
		}
		f.links[0].Cut(false)
		f.untilUp(0)
		time.Sleep(3 * time.Second)
		if s := inspect(t, lims[0], "k"); s.Fallback != 0 || s.StoreDown || s.Store == nil || s.Store.Used < 35 {
			t.Errorf("afterwards: %+v, %+v", s, s.Store)
		}
	})
}

// What is told of a settle that got lost, of one under way, and of what is owed.
func TestInspectTellsOfSettles(t *testing.T) {
	inBubble(t, single(PerMinute(60_000)), func(f *fleet) {
		l := f.lims[0]
		for range 200 {
			f.ask(0, "k", 1)
			time.Sleep(5 * time.Millisecond)
		}
		f.links[0].Inject(swallowed)
		flushed := make(chan error)
		go func() { flushed <- f.nodes[0].Flush(ctx) }()
		time.Sleep(time.Millisecond)
		if s := inspect(t, l, "k"); !s.InFlight || s.Unsettled {
			t.Errorf("while Redis is told: %+v", s)
		}
		if err := <-flushed; err == nil {
			t.Error("a lost settle is no error of Flush")
		}
		s := inspect(t, l, "k")
		if !s.Unsettled || s.Slice < 1 || !strings.Contains(s.Why, "not renewed") {
			t.Errorf("after it was lost: %+v; %s", s, s.Why)
		}
		for _, err := range []error{l.Charge("charged", 7), l.Refund("refunded", 4)} {
			if err != nil {
				t.Error(err)
			}
		}
		if charged, refunded := inspect(t, l, "charged"), inspect(t, l, "refunded"); charged.Owed != 7 || refunded.Owed != -4 {
			t.Errorf("owed %v and %v, want 7 and −4", charged.Owed, refunded.Owed)
		}
		time.Sleep(3 * time.Minute)
	})
}

// A limit of the key's own is told, also one of too many to share a plan.
func TestInspectTellsTheLimitInForce(t *testing.T) {
	setup := single(PerMinute(100))
	setup.limiter.LimitFor = func(key string) (Limit, bool) {
		var n int64
		_, err := fmt.Sscanf(key, "tier %d", &n)
		return PerMinute(n), err == nil
	}
	inBubble(t, setup, func(f *fleet) {
		l := f.lims[0]
		for _, c := range []struct {
			key  string
			want Limit
		}{{"tier 7", PerMinute(7)}, {"none", PerMinute(100)}, {strings.Repeat("long", 50), PerMinute(100)}, {"tier 0", PerMinute(0)}} {
			for range 2 {
				if s := inspect(t, l, c.key); s.Limit != c.want {
					t.Errorf("%.10s: %v, want %v", c.key, s.Limit, c.want)
				}
				allow(t, l, c.key, 1)
			}
		}
		if s := inspect(t, l, "tier 0"); s.Why != "Denied: the limit is 0." || s.Store != nil || s.StoreCause != "not asked: the limit is 0" {
			t.Errorf("%+v: %s", s, s.Why)
		}
		for i := range 2 * mostTiers {
			allow(t, l, fmt.Sprint("tier ", 1000+i), 1)
		}
		if s := inspect(t, l, "tier 3000"); s.Limit != PerMinute(3000) || !s.Known {
			t.Errorf("one of many: %+v", s)
		}
		if err := l.SetLimit(PerMinute(200)); err != nil {
			t.Error(err)
		}
		if s := inspect(t, l, "none"); s.Limit != PerMinute(200) {
			t.Errorf("after SetLimit: %v", s.Limit)
		}
	})
}

func TestInspectFailsAsItSays(t *testing.T) {
	inBubble(t, single(PerMinute(100)), func(f *fleet) {
		l := f.lims[0]
		gone, cancel := context.WithCancel(ctx)
		cancel()
		if _, err := l.Inspect(gone, "k"); !errors.Is(err, context.Canceled) {
			t.Errorf("a context that has ended: %v", err)
		}
		if _, err := l.Inspect(ctx, strings.Repeat("k", longestKey+1)); !errors.Is(err, ErrInvalidKey) {
			t.Errorf("a key that is too long: %v", err)
		}
		f.links[0].Inject(swallowed)
		start := time.Now()
		if s := inspect(t, l, "k"); s.Store != nil || s.StoreCause != "timeout" || time.Since(start) != f.nodes[0].opts.StoreTimeout {
			t.Errorf("a store that does not answer: %+v after %v", s, time.Since(start))
		}
		soon, cancel := context.WithTimeout(ctx, time.Millisecond)
		defer cancel()
		f.links[0].Inject(swallowed)
		if _, err := l.Inspect(soon, "k"); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("a context that ends meanwhile: %v", err)
		}
		time.Sleep(10 * time.Second)
		if err := l.Close(); err != nil {
			t.Error(err)
		}
		if _, err := l.Inspect(ctx, "k"); !errors.Is(err, ErrClosed) {
			t.Errorf("after Close: %v", err)
		}
	})
}
