package measure

import (
	"fmt"
	"time"

	"github.com/hybridlimit/hybrid/bench/peer"
	"github.com/hybridlimit/hybrid/bench/report"
)

// flooded is what one contestant makes of the flood, a number per round.
type flooded struct{ perSecond, commands, cpu []float64 }

// flood measures one hot key that is offered far more than its limit by as many
// callers as a contestant may have.
func (r *runner) flood() (tables []report.Table, err error) {
	entrants, err := r.enterFlooded()
	if err != nil {
		return nil, err
	}
	defer func() {
		if closed := closeAll(entrants); err == nil {
			err = closed
		}
	}()
	seen := make([]flooded, len(entrants))
	for round := range r.Rounds {
		r.tell("one hot key, round %d of %d", round+1, r.Rounds)
		for i, e := range entrants {
			if err := r.floodOne(e, &seen[i]); err != nil {
				return nil, err
			}
		}
		if r.ctx.Err() != nil {
			return nil, r.ctx.Err()
		}
	}
	return []report.Table{r.floodTable(entrants, seen)}, nil
}

// enterFlooded sets all up, their limit used up.
func (r *runner) enterFlooded() (entrants []*entrant, err error) {
	for _, kind := range append(kinds(peer.Memory), kindsWithout(peer.Redis, peer.Memory)...) {
		e, err := r.enterShared(kind)
		if err != nil {
			return nil, err
		}
		for range r.Limit.Count * 3 / 2 {
			e.ask(0, r.keys[0])
		}
		e.forget()
		entrants = append(entrants, e)
	}
	return entrants, nil
}

// enterShared sets one node up, on the common server if it needs one.
func (r *runner) enterShared(kind peer.Kind) (*entrant, error) {
	server := r.shared
	if !kind.Place.Has(peer.Redis) {
		server = nil
	}
	return enter(kind, server, r.shared.Addr, 1, r.Limit, len(r.keys))
}

func kindsWithout(place, without peer.Place) (list []peer.Kind) {
	for _, k := range kinds(place) {
		if !k.Place.Has(without) {
			list = append(list, k)
		}
	}
	return list
}

func (r *runner) floodOne(e *entrant, seen *flooded) error {
	var ns float64
	begin := time.Now()
	u, err := e.usage(r.ctx, func() {
		ns = perCall(peer.Callers, r.Flood, func(int) int { return 0 }, func(int) { e.ask(0, r.keys[0]) })
	})
	took := time.Since(begin).Seconds()
	seen.perSecond = append(seen.perSecond, 1e9/ns)
	if e.server == nil {
		seen.commands, seen.cpu = append(seen.commands, none), append(seen.cpu, none)
	} else {
		seen.commands, seen.cpu = append(seen.commands, float64(u.Commands)/took), append(seen.cpu, 100*u.CPU.Seconds()/took)
	}
	return err
}

func (r *runner) floodTable(entrants []*entrant, seen []flooded) report.Table {
	t := report.Table{
		Name: "flood", Title: "One hot key, far beyond its limit", Base: peer.Strict.Name,
		About: fmt.Sprintf("%d callers of one key that is used up (%s), as fast as they get answers, on one node. Commands are those that Redis executed, in scripts too; CPU is of one core.",
			peer.Callers, r.limitText()),
		Columns: []report.Column{
			{Head: "decisions per second", Better: report.More},
			{Head: "Redis commands per second", Better: report.Neither},
			{Head: "Redis CPU, %", Better: report.Neither},
		},
	}
	for i, e := range entrants {
		s := &seen[i]
		perSecond := median(s.perSecond)
		t.Rows = append(t.Rows, e.row(perSecond, median(s.commands), median(s.cpu)))
		t.Notes = append(t.Notes, e.failures(perSecond*r.Flood.Seconds()*float64(r.Rounds), "instead of a decision")...)
	}
	return t
}
