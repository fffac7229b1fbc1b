package measure

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"time"

	"github.com/hybridlimit/hybrid/bench/peer"
	"github.com/hybridlimit/hybrid/bench/report"
)

const (
	pacedKeys    = 40
	pacedLoad    = 0.6 // of each key's limit
	pacedCallers = 16  // of each contestant
)

// latency measures what a request waits for its answer under a load that every
// contestant admits, with Redis at several distances. All contestants run side by
// side at a low load, and are offered the same requests.
func (r *runner) latency() ([]report.Table, error) {
	if err := r.wait(); err != nil {
		return nil, err
	}
	t := report.Table{
		Name: "latency", Title: "Decisions with one Redis", Base: peer.Strict.Name,
		About: fmt.Sprintf("Microseconds until a request has its answer, on average and at the 99th percentile: %d keys, each at %.0f %% of its limit (%s), one node of each contestant, after %v. "+
			"The last column is the first request of a key. Redis answers later by the time in the head, on each round trip.", pacedKeys, 100*pacedLoad, r.limitText(), r.Warm),
	}
	rows := make(map[string][]float64)
	var entrants []*entrant
	for i, delay := range r.Delays {
		r.tell("decisions with one Redis, answers %v later", delay)
		now, first, err := r.latencyAt(i, rows)
		if err != nil {
			return nil, err
		}
		entrants = now
		head := fmt.Sprintf("+%d ms", delay.Milliseconds())
		t.Columns = append(t.Columns,
			report.Column{Head: head + ", mean, µs", Better: report.Less},
			report.Column{Head: head + ", p99, µs", Better: report.Less})
		if i == len(r.Delays)/2 {
			t.Columns = append(t.Columns, report.Column{Head: head + ", first request, µs", Better: report.Less})
			for name, mean := range first {
				rows[name] = append(rows[name], mean)
			}
		}
	}
	for _, e := range entrants {
		t.Rows = append(t.Rows, e.row(rows[e.kind.Name]...))
		t.Notes = append(t.Notes, e.failures(r.Pace.Seconds()/r.pacedGap().Seconds(), "")...)
	}
	return []report.Table{t}, nil
}

func (r *runner) pacedGap() time.Duration {
	return time.Duration(float64(r.Limit.Period) / float64(r.Limit.Count) / pacedLoad / pacedKeys)
}

func (r *runner) limitText() string {
	return fmt.Sprintf("%s per %s", report.Number(float64(r.Limit.Count)), strings.TrimSuffix(r.Limit.Period.String(), "0s"))
}

// latencyAt measures at one delay. It appends to each contestant's row, and
// returns what first requests took.
func (r *runner) latencyAt(i int, rows map[string][]float64) (entrants []*entrant, first map[string]float64, err error) {
	addr, err := r.away(r.shared, r.Delays[i])
	if err != nil {
		return nil, nil, err
	}
	var fresh []*entrant
	for _, kind := range kinds(peer.Redis) {
		if kind.Place.Has(peer.Unasked) {
			continue
		}
		e, err := enter(kind, r.shared, addr, 1, r.Limit, len(r.keys))
		if err != nil {
			return nil, nil, err
		}
		fresh = append(fresh, e)
	}
	defer func() {
		if closed := closeAll(fresh); err == nil {
			err = closed
		}
	}()
	entrants = append(r.ripe.near[i][:len(r.ripe.near[i]):len(r.ripe.near[i])], fresh...)
	first = make(map[string]float64)
	paces := make([]paced, len(entrants))
	var wg sync.WaitGroup
	for j, e := range entrants {
		e.connect()
		wg.Go(func() {
			// So that they do not all call at the same moments.
			time.Sleep(r.pacedGap() * time.Duration(j) / time.Duration(len(entrants)))
			paces[j] = r.pace(e)
		})
	}
	wg.Wait()
	for j, e := range entrants {
		name := e.kind.Name
		rows[name] = append(rows[name], micros(mean(paces[j].took)), micros(float64(quantile(paces[j].took, 0.99))))
		first[name] = micros(mean(paces[j].first))
	}
	return entrants, first, nil
}

// connect makes the connections that a contestant will need, on other keys: no
// request is to wait for one.
func (e *entrant) connect() {
	var wg sync.WaitGroup
	for i := range pacedCallers {
		wg.Go(func() { e.ask(0, fmt.Sprintf("connects %d", i)) })
	}
	wg.Wait()
}

// paced is how long requests took, and the first ones of their keys.
type paced struct{ took, first []time.Duration }

// pace offers one contestant its load.
func (r *runner) pace(e *entrant) (p paced) {
	gap := r.pacedGap()
	all := make([]time.Duration, int((r.Warm+r.Pace)/gap)+1)
	keys := make([]int, len(all))
	rng := rand.New(rand.NewPCG(3, 4)) // the same requests for all
	for i := range keys {
		keys[i] = rng.IntN(pacedKeys)
	}
	made := pace(pacedCallers, r.Warm+r.Pace, gap, func(i int) {
		key := r.keys[keys[i]%len(r.keys)]
		begin := time.Now()
		e.ask(0, key)
		all[i] = time.Since(begin)
	})
	seen := make(map[int]bool)
	for i := range made {
		if all[i] == 0 {
			continue // the load was more than the machine can do
		}
		if !seen[keys[i]] {
			seen[keys[i]] = true
			p.first = append(p.first, all[i])
		}
		if time.Duration(i)*gap >= r.Warm {
			p.took = append(p.took, all[i])
		}
	}
	return p
}

func micros(ns float64) float64 { return ns / 1e3 }
