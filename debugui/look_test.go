package debugui

import (
	"fmt"
	"math"
	"testing"
	"time"

	"github.com/hybridlimit/hybrid"
)

func denials(n int, rate float64) (list []hybrid.KeyDenials) {
	for i := range n {
		list = append(list, hybrid.KeyDenials{Key: fmt.Sprint(i), Rate: rate - float64(i)})
	}
	return list
}

func TestLoudLimiterHidesNoQuietOne(t *testing.T) {
	limiters := []limiterInfo{{name: "api"}, {name: "login"}, {name: "idle"}}
	got := merge(limiters, [][]hybrid.KeyDenials{denials(20, 1000), denials(20, 50), nil})
	if len(got) != mostListed {
		t.Fatalf("%d keys are listed, want %d", len(got), mostListed)
	}
	count := map[string]int{}
	for i, d := range got {
		count[d.limiter]++
		if i > 0 && d.Rate > got[i-1].Rate {
			t.Errorf("%v comes after %v", d, got[i-1])
		}
	}
	if count["api"] != 17 || count["login"] != 3 {
		t.Errorf("listed are %v", count)
	}
}

func TestListIsBounded(t *testing.T) {
	var limiters []limiterInfo
	var lists [][]hybrid.KeyDenials
	for i := range 100 {
		limiters = append(limiters, limiterInfo{name: fmt.Sprint(i)})
		lists = append(lists, denials(20, float64(i+100)))
	}
	if got := merge(limiters, lists); len(got) != mostAlways || got[0].limiter != "99" {
		t.Errorf("%d keys are listed, the first of limiter %s", len(got), got[0].limiter)
	}
}

// Of very many limiters those that decide have charts, and the report says so.
func TestChartsAreBounded(t *testing.T) {
	s := &script{}
	s.stats.Limiters = map[string]hybrid.LimiterStats{}
	for i := range 100 {
		name := fmt.Sprintf("limiter-%02d", i)
		s.limiters = append(s.limiters, limiterInfo{name: name, limit: hybrid.PerSecond(10)})
		s.stats.Limiters[name] = hybrid.LimiterStats{}
	}
	from := s.look()
	for i := range 10 {
		s.stats.Limiters[fmt.Sprintf("limiter-%02d", 90+i)] = hybrid.LimiterStats{SliceTokens: 1000}
	}
	to := s.look()
	to.at = from.at.Add(interval)
	r := build("", newKeyring(false), history{from}.with(to, from.at))
	charts := 0
	for i, l := range r.Limiters {
		if l.Chart != nil {
			charts++
		} else if i >= 90 {
			t.Errorf("%s is busy and has no chart", l.Name)
		}
	}
	if charts != mostCharts || r.Node.ChartsLeftOut != 76 {
		t.Errorf("%d charts, %d left out", charts, r.Node.ChartsLeftOut)
	}
}

// The limit of one key is drawn beside traffic of its size, and not where it would
// flatten the traffic or lie on the ground.
func TestLimitIsDrawnWhereItSaysSomething(t *testing.T) {
	for rate, drawn := range map[int64]bool{100: true, 2000: true, 2800: true, 50: false, 10_000: false} {
		h := looked(nil)
		h[0].at = h[1].at.Add(-longestStep) // 1900 admitted a second
		l := &limiterInfo{name: "api", limit: hybrid.PerSecond(rate)}
		c := chartOf(l, h)
		if got := c.Line.known(); got != drawn || drawn && c.Up.Value < c.Line {
			t.Errorf("a limit of %d/s: line at %v of %v", rate, c.Line, c.Up.Value)
		}
	}
}

func (n number) known() bool { return !math.IsNaN(float64(n)) }

// What a second of looking costs beside the look itself, with as many charts as there
// may be.
func BenchmarkReport(b *testing.B) {
	s := &script{}
	s.stats.Limiters = map[string]hybrid.LimiterStats{}
	var h history
	for i := range 121 {
		for j := range mostCharts {
			name := fmt.Sprintf("limiter-%02d", j)
			if i == 0 {
				s.limiters = append(s.limiters, limiterInfo{name: name, limit: hybrid.PerSecond(10)})
			}
			s.stats.Limiters[name] = hybrid.LimiterStats{SliceTokens: uint64(1000 * i), MemoDenied: uint64(10 * i)}
		}
		one := s.look()
		one.at = noon.Add(time.Duration(i) * interval)
		h = h.with(one, noon)
	}
	keys := newKeyring(false)
	for b.Loop() {
		build("", keys, h)
	}
}
