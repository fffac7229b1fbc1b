package chaos

import (
	"fmt"
	"os"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/hybridlimit/hybrid"
)

// figure is what the process needs between two rounds of a soak, when nobody asks.
type figure struct {
	heap        float64 // MB, after a collection
	resident    float64 // MB
	goroutines  float64 // of the fleet
	connections float64 // as the clients count them
	clients     float64 // as the server does
}

func (s *soak) measure() figure {
	runtime.GC()
	runtime.GC() // what finalizers held until the first
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return figure{
		heap:        float64(m.HeapAlloc) / (1 << 20),
		resident:    residentMB(),
		goroutines:  float64(fleetGoroutines()),
		connections: float64(s.fleet.connections()),
		clients:     float64(s.clients()),
	}
}

// residentMB is the memory of this process as the system sees it; 0 where it does
// not say.
func residentMB() float64 {
	text, err := os.ReadFile("/proc/self/statm")
	if err != nil {
		return 0
	}
	pages, err := strconv.ParseFloat(strings.Fields(string(text))[1], 64)
	if err != nil {
		return 0
	}
	return pages * float64(os.Getpagesize()) / (1 << 20)
}

// steady is a figure that must not grow: its name, what it is, and by how much it
// may differ between two quarters of a run. A connection has a third of a megabyte
// of buffers, in its client and in two proxies: memory follows connections.
type steady struct {
	name string
	of   func(figure) float64
	more float64 // beyond a tenth
}

var steadies = []steady{
	{"MB of heap", func(f figure) float64 { return f.heap }, 8},
	{"MB resident", func(f figure) float64 { return f.resident }, 32},
	{"goroutines", func(f figure) float64 { return f.goroutines }, 9},
	{"connections", func(f figure) float64 { return f.connections }, 18},
	{"clients of the server", func(f figure) float64 { return f.clients }, 18},
}

// quarters are the medians of the quarters of a run.
func quarters(figures []figure, of func(figure) float64) (q [4]float64) {
	for i := range q {
		part := figures[i*len(figures)/4 : (i+1)*len(figures)/4]
		if len(part) == 0 {
			continue
		}
		values := make([]float64, len(part))
		for j, f := range part {
			values[j] = of(f)
		}
		slices.Sort(values)
		q[i] = values[len(values)/2]
	}
	return q
}

// flat returns what has grown: the last quarter needs more than the second. In
// the first tables and pools grow to their size.
func (s *soak) flat() (bad []string) { return growth(s.figures) }

func growth(figures []figure) (bad []string) {
	for _, st := range steadies {
		q := quarters(figures, st.of)
		if q[3] > q[1]*1.1+st.more {
			bad = append(bad, fmt.Sprintf("%s grow: %.1f by quarters", st.name, q))
		}
	}
	return bad
}

// minute is what happened in a while.
type minute struct {
	from                       time.Duration // since the soak began
	rounds, requests, byPolicy int
	admitted, outages          int
	longest, late              time.Duration // call and timer
}

func (m *minute) add(o *outcome) {
	m.rounds++
	m.requests += len(o.answers)
	for i := range o.answers {
		a := &o.answers[i]
		m.longest = max(m.longest, a.took)
		if a.path == hybrid.PathFallback {
			m.byPolicy++
		}
		if a.allowed {
			m.admitted++
		}
	}
	for _, e := range o.events {
		if e.down {
			m.outages++
		}
	}
	m.late = max(m.late, o.worstControl(0, o.stopped))
}

func (m minute) String() string {
	return fmt.Sprintf("%d faults, %d requests, %d admitted, %d by policy; %d outages of nodes; longest call %v, latest timer %v",
		m.rounds, m.requests, m.admitted, m.byPolicy, m.outages, m.longest.Round(time.Millisecond/10), m.late.Round(time.Millisecond/10))
}

// tell prints the last minute.
func (s *soak) tell() {
	f := s.figures[len(s.figures)-1]
	s.t.Logf("%4v: %v; heap %.1f MB, resident %.0f MB, %.0f goroutines, %.0f connections, %.0f clients of the server",
		time.Since(s.start).Round(time.Second), s.minute, f.heap, f.resident, f.goroutines, f.connections, f.clients)
	s.minute = minute{from: time.Since(s.start)}
}

// summary sums the soak up.
func (s *soak) summary() string {
	var b strings.Builder
	fmt.Fprintf(&b, "seed %d, %v: %v\n", *seedFlag, time.Since(s.start).Round(time.Second), s.total)
	fmt.Fprintf(&b, "in %d of %d rounds the machine was busy: judged without times, but for the longest call\n", s.stood, s.round)
	for _, st := range steadies {
		fmt.Fprintf(&b, "%s by quarters: %.1f\n", st.name, quarters(s.figures, st.of))
	}
	return b.String()
}

// What grows is told, by the name of what it is; what wavers is not.
func TestGrowthIsTold(t *testing.T) {
	flat := func() (figures []figure) {
		for i := range 40 {
			figures = append(figures, figure{10 + float64(i%3), 50, 100 + float64(i%7), 30, 40})
		}
		return figures
	}
	if bad := growth(flat()); len(bad) > 0 {
		t.Errorf("%q", bad)
	}
	for name, harm := range map[string]func(f *figure, round float64){
		"MB of heap":            func(f *figure, round float64) { f.heap += round * 0.8 },
		"MB resident":           func(f *figure, round float64) { f.resident += round * 3 },
		"goroutines":            func(f *figure, round float64) { f.goroutines += round * 1.5 },
		"connections":           func(f *figure, round float64) { f.connections += round * 1.5 },
		"clients of the server": func(f *figure, round float64) { f.clients += round * 1.5 },
	} {
		figures := flat()
		for i := range figures {
			harm(&figures[i], float64(i))
		}
		if bad := growth(figures); len(bad) != 1 || !strings.HasPrefix(bad[0], name+" grow") {
			t.Errorf("%s: %q", name, bad)
		}
	}
}
