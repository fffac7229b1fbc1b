package debugui

import (
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hybridlimit/hybrid"
)

// script is a node whose counters a test writes.
type script struct {
	stats    hybrid.Stats
	limiters []limiterInfo
	denied   []denial
	looks    int
}

func (s *script) look() sample {
	s.looks++
	one := sample{at: time.Now(), stats: s.stats, limiters: s.limiters, denied: s.denied}
	one.stats.Limiters = map[string]hybrid.LimiterStats{}
	for name, st := range s.stats.Limiters {
		one.stats.Limiters[name] = st
	}
	return one
}

func (s *script) handler() *handler {
	return newHandler(nil, Options{Name: "server-1"}, func(history) sample { return s.look() })
}

func TestNodeIsNotLookedAtWhileNobodyLooks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &script{}
		h := s.handler()
		for range 60 {
			send(h, http.MethodGet, "/")
			send(h, http.MethodHead, "/")
			send(h, http.MethodHead, "/?format=json")
			send(h, http.MethodPost, "/?format=json")
			send(h, http.MethodGet, "/?format=xml")
			send(h, http.MethodGet, "/?format=json", keyIDHeader, "unknown")
			time.Sleep(time.Second)
		}
		if s.looks != 0 {
			t.Errorf("the node was looked at %d times, and nobody wanted its numbers", s.looks)
		}
	})
}

func TestViewersShareOneLookASecond(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &script{}
		h := s.handler()
		for range 100 { // ten seconds, three viewers who ask ten times a second
			for range 3 {
				reported(t, h)
			}
			time.Sleep(100 * time.Millisecond)
		}
		if s.looks != 10 {
			t.Errorf("the node was looked at %d times in ten seconds, want 10", s.looks)
		}
	})
}

func TestPageIsToldWhenToAskAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &script{}
		h := s.handler()
		first := reported(t, h)
		time.Sleep(300 * time.Millisecond)
		second := reported(t, h)
		if first.Next != 1 || second.Next != 0.7 || !first.At.Equal(second.At) {
			t.Errorf("next looks in %v and %v s, want 1 and 0.7, of the same look", first.Next, second.Next)
		}
		time.Sleep(time.Duration(float64(second.Next) * float64(time.Second)))
		if third := reported(t, h); third.Next != 1 || third.At.Sub(first.At) != time.Second {
			t.Errorf("whoever waits as told gets numbers of %v, after those of %v", third.At, first.At)
		}
	})
}

func TestHistoryIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &script{limiters: []limiterInfo{{name: "api", limit: hybrid.PerSecond(10)}}}
		s.stats.Limiters = map[string]hybrid.LimiterStats{"api": {}}
		h := s.handler()
		for range 600 {
			reported(t, h)
			time.Sleep(time.Second)
		}
		r := reported(t, h)
		if n := looksKept(h); n != 121 {
			t.Errorf("%d looks are kept, want those of two minutes", n)
		}
		if ages := r.Limiters[0].Chart.Ages; len(ages) != 120 || ages[0] != 119 || ages[119] != 0 {
			t.Errorf("a chart of %v", ages)
		}
		time.Sleep(time.Hour) // nobody looks
		r = reported(t, h)
		if n := looksKept(h); n != 1 || r.Limiters[0].Admitted.Text != none {
			t.Errorf("after an hour %d looks are kept, and %s is admitted", n, r.Limiters[0].Admitted.Text)
		}
	})
}

func looksKept(h *handler) int {
	h.sampler.mu.Lock()
	defer h.sampler.mu.Unlock()
	return len(h.sampler.kept)
}

// Numbers of a tab that was asleep are averages of the time between, not of a second.
func TestRatesAreOfTheTimeBetween(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &script{limiters: []limiterInfo{{name: "api", limit: hybrid.PerSecond(10)}}}
		set := func(slice, denied uint64) {
			s.stats.Limiters = map[string]hybrid.LimiterStats{"api": {SliceTokens: slice, MemoDenied: denied}}
		}
		h := s.handler()
		set(1000, 50) // long before anybody looked
		if r := reported(t, h); r.Limiters[0].Admitted.Text != none || r.Rates.Text != none {
			t.Errorf("a first look knows rates: %+v", r.Limiters[0].Admitted)
		}
		set(1500, 75)
		time.Sleep(50 * time.Second)
		r := reported(t, h)
		if l := r.Limiters[0]; l.Admitted.Value != 10 || l.Denied.Value != 0.5 || r.Rates.Value != 50 {
			t.Errorf("%v admitted and %v denied a second in %v s, want 10 and 0.5 in 50", l.Admitted.Value, l.Denied.Value, r.Rates.Value)
		}
		for range 10 {
			s.stats.Limiters["api"] = hybrid.LimiterStats{SliceTokens: s.stats.Limiters["api"].SliceTokens + 7, MemoDenied: 75}
			time.Sleep(time.Second)
			r = reported(t, h)
		}
		if l := r.Limiters[0]; l.Admitted.Value != 7 || l.Denied.Value != 0 || r.Rates.Value != 5 {
			t.Errorf("%v admitted and %v denied a second in %v s, want 7 and 0 in 5", l.Admitted.Value, l.Denied.Value, r.Rates.Value)
		}
	})
}

// A chart is of the times in which somebody looked.
func TestChartHasGapsWhereNobodyLooked(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &script{limiters: []limiterInfo{{name: "api", limit: hybrid.PerSecond(1000)}}}
		var slice uint64
		h := s.handler()
		look := func(after time.Duration, more uint64) *chart {
			time.Sleep(after)
			slice += more
			s.stats.Limiters = map[string]hybrid.LimiterStats{"api": {SliceTokens: slice}}
			return reported(t, h).Limiters[0].Chart
		}
		if c := look(0, 5000); len(c.Ages) != 0 || c.Up.Text != none || strings.Contains(c.Words, "admitted") {
			t.Errorf("after the first look: %+v", c)
		}
		if c := look(50*time.Second, 50_000); len(c.Ages) != 0 || c.Up.Text != none {
			t.Errorf("a first viewer after a while: %+v", c)
		}
		look(time.Second, 10)
		look(2*time.Second, 0) // a slow network
		c := look(40*time.Second, 40_000)
		if !slices.Equal(c.Since, []number{43, 42}) || !slices.Equal(c.Ages, []number{42, 40}) || !slices.Equal(c.Series[0].Admitted, []number{10, 0}) {
			t.Errorf("there are points from %v to %v, of %v a second", c.Since, c.Ages, c.Series[0].Admitted)
		}
		if c.Up.Value != 10 || !strings.HasSuffix(c.Words, "at most 10/s admitted, 0/s denied; with gaps, in which nobody looked") {
			t.Errorf("its scale ends at %v: %s", c.Up.Value, c.Words)
		}
		c = look(time.Second, 20)
		if n := len(c.Ages); n != 3 || c.Since[2] != 1 || c.Ages[2] != 0 || c.Series[0].Admitted[2] != 20 || c.Up.Value != 20 {
			t.Errorf("after the gap: %+v", c)
		}
	})
}

func TestLimiterThatWasMadeAgainBeginsAtZero(t *testing.T) {
	inBubble(t, func(w *world) {
		h := w.handler(nil)
		api := w.limiter("api", hybrid.PerHour(1000), nil)
		use(t, api, "ann", 500)
		reported(t, h)
		time.Sleep(time.Second)
		if err := api.Close(); err != nil {
			t.Fatal(err)
		}
		use(t, w.limiter("api", hybrid.PerHour(1000), nil), "ann", 20)
		if r := reported(t, h); r.Limiters[0].Admitted.Value < 15 || r.Limiters[0].Admitted.Value > 20 {
			t.Errorf("%v admitted a second, want about 20", r.Limiters[0].Admitted.Value)
		}
	})
}

// Viewers, requests, and limiters that come and go, at once: for the race detector.
func TestViewersDisturbNobody(t *testing.T) {
	inBubble(t, func(w *world) {
		h := w.handler(nil)
		api := w.limiter("api", hybrid.PerMinute(60), nil)
		var wg sync.WaitGroup
		for i := range 4 {
			wg.Go(func() {
				for range 30 {
					use(t, api, "customer-42", 20)
					for _, d := range reported(t, h).Denied {
						_ = bodyOf(t, send(h, http.MethodGet, "/?format=json", keyIDHeader, d.ID))
					}
					advance(70 + i)
				}
			})
		}
		wg.Go(func() {
			for range 20 {
				one := w.limiter("short-lived", hybrid.PerMinute(60), nil)
				use(t, one, "customer-42", 100)
				advance(99)
				if err := one.Close(); err != nil {
					t.Error(err)
				}
			}
		})
		wg.Wait()
		if r := reported(t, h); len(r.Limiters) != 1 || len(r.Denied) == 0 {
			t.Errorf("%d limiters and %d denied keys", len(r.Limiters), len(r.Denied))
		}
	})
}
