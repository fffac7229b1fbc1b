package measure

import (
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	"github.com/hybridlimit/hybrid/internal/zipf"

	"github.com/hybridlimit/hybrid/bench/peer"
	"github.com/hybridlimit/hybrid/bench/report"
)

// fleets measures whole fleets: what they cost Redis for a service's traffic, and
// what they admit of a key that all nodes want at once.
func (r *runner) fleets() ([]report.Table, error) {
	if err := r.wait(); err != nil {
		return nil, err
	}
	traffic, crowd := r.trafficTable(), r.crowdTable()
	requests := r.requests()
	measure := func(e *entrant) error {
		if r.wants("traffic") {
			row, err := r.traffic(e, requests)
			if err != nil {
				return err
			}
			traffic.Rows = append(traffic.Rows, row)
		}
		if r.wants("fleet") {
			crowd.Rows = append(crowd.Rows, r.crowd(e))
		}
		return r.ctx.Err()
	}
	for _, e := range r.ripe.fleet {
		if err := measure(e); err != nil {
			return nil, err
		}
	}
	for _, kind := range kinds(peer.Redis) {
		if kind.Floor || kind.Place.Has(peer.Unasked) {
			continue
		}
		e, err := r.enterFleet(kind)
		if err != nil {
			return nil, err
		}
		if err := measure(e); err != nil {
			return nil, err
		}
		if err := e.close(); err != nil {
			return nil, err
		}
	}
	if r.wants("fleet") {
		rows, err := r.crowdsInMemory()
		if err != nil {
			return nil, err
		}
		crowd.Rows = append(crowd.Rows, rows...)
	}
	return []report.Table{traffic, crowd}, nil
}

// request is one of a service's: who gets it, and for which key.
type request struct{ node, key int32 }

// requests are the same for all fleets.
func (r *runner) requests() []request {
	rng := rand.New(rand.NewPCG(5, 6))
	popular := zipf.New(len(r.keys), 0.99)
	list := make([]request, int(r.Traffic.Seconds()*float64(r.Rate))+r.Rate/10)
	for i := range list {
		list[i] = request{int32(rng.IntN(r.Nodes)), int32(popular.Draw(rng) - 1)}
	}
	return list
}

func (r *runner) trafficTable() report.Table {
	return report.Table{
		Name: "traffic", Title: "What a service's traffic costs Redis", Base: peer.Balanced.Name,
		About: fmt.Sprintf("%s requests per second over %d nodes and %s by Zipf's law (0.99), each key limited to %s; %v of them, each fleet on a Redis of its own, which is charged with everything that the fleet's nodes do meanwhile. "+
			"Per 1,000 requests: round trips as Redis reads them, commands that it executed, in scripts too, and its processor time. The slices of `hybrid Strict` and `Exact` begin cold, the floors of `hybrid Balanced` are earned.",
			report.Number(float64(r.Rate)), r.Nodes, count(len(r.keys)), r.limitText(), r.Traffic),
		Columns: []report.Column{
			{Head: "round trips", Better: report.Less},
			{Head: "commands", Better: report.Less},
			{Head: "Redis CPU, ms", Better: report.Less},
			{Head: "answers per second", Better: report.Neither},
		},
	}
}

// traffic offers a fleet the requests, after some that only make connections.
func (r *runner) traffic(e *entrant, requests []request) (report.Row, error) {
	r.tell("a service's traffic: %s", e.kind.Name)
	gap := time.Second / time.Duration(r.Rate)
	offer := func(d time.Duration, requests []request) int {
		return pace(peer.Callers, d, gap, func(i int) {
			q := requests[i%len(requests)]
			e.ask(int(q.node), r.keys[q.key])
		})
	}
	first := r.Rate / 10
	offer(r.Traffic/10, requests[:first])
	var made int
	begin := time.Now()
	u, err := e.usage(r.ctx, func() { made = offer(r.Traffic, requests[first:]) })
	thousands := float64(max(made, 1)) / 1000
	return e.row(float64(u.Reads)/thousands, float64(u.Commands)/thousands, u.CPU.Seconds()*1000/thousands,
		float64(made)/time.Since(begin).Seconds()), err
}

// crowdOffer is what a fleet's key is offered, in limits per node: each node
// alone is offered more than the limit.
const crowdOffer = 1.2

func (r *runner) crowdTable() report.Table {
	return report.Table{
		Name: "fleet", Title: "Admitted against the limit",
		About: fmt.Sprintf("%d nodes that share one limit (%s) are offered %.0f times its burst for one key within %v, evenly. 100 %% is the burst and what refills meanwhile. Limiters in memory have an instance per node, as they are deployed; the others share one Redis.",
			r.Nodes, r.limitText(), crowdOffer*float64(r.Nodes), r.Crowd),
		Columns: []report.Column{{Head: "admitted, % of the limit"}},
	}
}

// crowd offers one key to all nodes of a fleet.
func (r *runner) crowd(e *entrant) report.Row {
	r.tell("a fleet on one key: %s", e.kind.Name)
	var admitted atomic.Int64
	gap := r.Crowd / time.Duration(crowdOffer*float64(r.Limit.Count)*float64(r.Nodes))
	begin := time.Now()
	pace(peer.Callers, r.Crowd, max(gap, 1), func(i int) {
		if e.ask(i%len(e.nodes), "the one that all want") {
			admitted.Add(1)
		}
	})
	return e.row(100 * float64(admitted.Load()) / r.Limit.Most(time.Since(begin)))
}

// crowdsInMemory runs them side by side: they have nothing in common.
func (r *runner) crowdsInMemory() ([]report.Row, error) {
	var list []peer.Kind
	for _, kind := range kindsWithout(peer.Memory, peer.Redis) {
		if !kind.Floor && !kind.Place.Has(peer.OneKey) {
			list = append(list, kind)
		}
	}
	rows, errs := make([]report.Row, len(list)), make([]error, len(list))
	var wg sync.WaitGroup
	for i, kind := range list {
		wg.Go(func() {
			e, err := r.enterFleet(kind)
			if err != nil {
				errs[i] = err
				return
			}
			rows[i], errs[i] = r.crowd(e), e.close()
		})
	}
	wg.Wait()
	for _, err := range errs {
		if err != nil {
			return nil, err
		}
	}
	return rows, nil
}
