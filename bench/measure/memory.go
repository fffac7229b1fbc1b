package measure

import (
	"fmt"
	"runtime"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/hybridlimit/hybrid/bench/peer"
	"github.com/hybridlimit/hybrid/bench/report"
)

// endless is a limit that no benchmark comes near: every request passes.
var endless = peer.Limit{Count: 1 << 40, Period: time.Hour}

// racer is an entrant of the race in memory.
type racer struct {
	*entrant
	heap float64   // bytes that it has allocated for its keys
	keys int       // that it knows
	ns   []float64 // by size: serial, then on all cores; medians
	runs float64   // calls, about, that were measured
}

// memory measures what a decision takes that asks nobody, beside what a look-up
// and one compare-and-swap take; and what the keys weigh.
func (r *runner) memory() (tables []report.Table, err error) {
	if err := r.ripe.close(); err != nil { // their heartbeats would be heard
		return nil, err
	}
	opened := time.Now()
	racers, err := r.enterRacers()
	if err != nil {
		return nil, err
	}
	defer func() {
		for _, e := range racers {
			if closed := e.close(); err == nil {
				err = closed
			}
		}
	}()
	if left := r.Settle - time.Since(opened); left > 0 {
		r.tell("%.0f s until nodes know one another", left.Seconds())
		time.Sleep(left)
	}
	known := 0
	for _, size := range r.Sizes {
		r.tell("decisions in memory: %d keys", size)
		// The library last: slices that nobody uses go back.
		for _, e := range slices.Backward(racers) {
			if e.takes(size) {
				e.meet(r.keys[known:size])
			}
		}
		known = size
		r.race(racers, r.keys[:size])
		if r.ctx.Err() != nil {
			return nil, r.ctx.Err()
		}
	}
	return []report.Table{r.speedTable(racers), r.heapTable(racers)}, nil
}

func (r *runner) enterRacers() ([]*racer, error) {
	var racers []*racer
	for _, kind := range kinds(peer.Memory) {
		server := r.shared
		if !kind.Place.Has(peer.Redis) {
			server = nil
		}
		e, err := enter(kind, server, r.shared.Addr, 1, endless, len(r.keys))
		if err != nil {
			return nil, err
		}
		racers = append(racers, &racer{entrant: e})
	}
	return racers, nil
}

// takes says whether a contestant takes part with so many keys.
func (e *racer) takes(keys int) bool { return e.kind.Busy == 0 || keys <= e.kind.Busy }

// meet shows a contestant new keys, and weighs what it keeps of them.
func (e *racer) meet(keys []string) {
	before := heap()
	own := strangers(keys)
	passes, workers := 1, 1
	if e.kind.Place.Has(peer.Redis) {
		// The second request of a key comes within a horizon of the first, so a slice
		// comes with it.
		passes, workers = 2, 512
	}
	for range passes {
		e.show(own, workers)
	}
	e.keys += len(keys)
	own = nil // what nobody keeps does not count
	e.heap += heap() - before
}

func (e *racer) show(keys []string, workers int) {
	first := e.nodes[0].Allow
	if h, ours := e.nodes[0].(*peer.Hybrid); ours {
		first = h.Fill
	}
	var wg sync.WaitGroup
	for w := range min(workers, len(keys)) {
		wg.Go(func() {
			for i := w; i < len(keys); i += workers {
				if ok, err := first(keys[i]); err != nil || !ok {
					e.failed.Add(1)
				}
			}
		})
	}
	wg.Wait()
}

// heap is the bytes of all live objects.
func heap() float64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return float64(m.HeapAlloc)
}

// race lets the racers run in turn, serially and on all cores. A first round
// warms up and does not count.
func (r *runner) race(racers []*racer, keys []string) {
	serial, parallel := make([][]float64, len(racers)), make([][]float64, len(racers))
	for round := range r.Rounds + 1 {
		for i, e := range racers {
			if !e.takes(len(keys)) {
				continue
			}
			one, all := e.run(keys, 1, r.Round), e.run(keys, runtime.GOMAXPROCS(0), r.Round)
			if round > 0 {
				serial[i], parallel[i] = append(serial[i], one), append(parallel[i], all)
			}
		}
	}
	for i, e := range racers {
		if len(serial[i]) == 0 {
			e.ns = append(e.ns, none, none)
			continue
		}
		e.ns = append(e.ns, median(serial[i]), median(parallel[i]))
	}
}

func (e *racer) run(keys []string, workers int, d time.Duration) float64 {
	mask := len(keys) - 1
	place := func(w int) int { return w * len(keys) / workers }
	ns := perCall(workers, d, place, func(i int) { e.ask(0, keys[i&mask]) })
	e.runs += float64(d) / ns
	return ns
}

func (r *runner) speedTable(racers []*racer) report.Table {
	t := report.Table{
		Name: "memory", Title: "Decisions in memory", Base: peer.Strict.Name,
		About: fmt.Sprintf("Nanoseconds between two decisions, from one goroutine and from one on each of %d cores, under a limit that nobody comes near, on keys of 16 bytes in random order. "+
			"`hybrid Strict` decides on slices, `hybrid Balanced` on floors; both have a real Redis behind them and settle with it meanwhile. A million slices are not compared: one benchmark cannot keep them all busy, and slices that nobody uses go back; a million floors are.", runtime.GOMAXPROCS(0)),
	}
	for _, size := range r.Sizes {
		name, base := count(size), ""
		if size > peer.Strict.Busy {
			base = peer.Balanced.Name
		}
		t.Columns = append(t.Columns,
			report.Column{Head: name + ", serial, ns", Better: report.Less, Base: base},
			report.Column{Head: name + ", all cores, ns", Better: report.Less, Base: base})
	}
	for _, e := range racers {
		t.Rows = append(t.Rows, e.row(e.ns...))
		t.Notes = append(t.Notes, e.failures(e.runs, "because other callers of the key were faster ten times in a row")...)
		if n := e.denied.Load(); n > 0 {
			t.Notes = append(t.Notes, fmt.Sprintf("%s denied %s %% of the calls", e.kind.Name, report.Number(100*float64(n)/e.runs)))
		}
		if h, ours := e.nodes[0].(*peer.Hybrid); ours {
			if st := h.Stats(); st.Blocked > 0 {
				t.Notes = append(t.Notes, fmt.Sprintf("%s: %s requests waited for Redis, two of each new key included; %s were decided", e.kind.Name, report.Number(float64(st.Blocked)), report.Number(e.runs)))
			}
		}
	}
	return t
}

func (r *runner) heapTable(racers []*racer) report.Table {
	t := report.Table{
		Name: "heap", Title: "Memory", Base: peer.Balanced.Name,
		About:   fmt.Sprintf("Bytes of live heap per key, with the key's own 16 bytes: %s, `hybrid Strict` %s.", count(len(r.keys)), count(min(len(r.keys), peer.Strict.Busy))),
		Columns: []report.Column{{Head: "bytes per key", Better: report.Less}},
	}
	for _, e := range racers {
		if e.kind.Place.Has(peer.OneKey) {
			continue
		}
		t.Rows = append(t.Rows, e.row(e.heap/float64(e.keys)))
	}
	return t
}

// count is a number of keys in words.
func count(n int) string {
	switch {
	case n == 1:
		return "1 key"
	case n%(1<<20) == 0:
		return fmt.Sprintf("%d Mi keys", n>>20)
	case n%(1<<10) == 0:
		return fmt.Sprintf("%d Ki keys", n>>10)
	default:
		return strings.TrimSuffix(report.Number(float64(n)), ".0") + " keys"
	}
}
