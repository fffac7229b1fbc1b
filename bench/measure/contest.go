package measure

import (
	"context"
	"errors"
	"fmt"
	"math"
	"sync/atomic"

	"github.com/hybridlimit/hybrid/bench/peer"
	"github.com/hybridlimit/hybrid/bench/redisd"
	"github.com/hybridlimit/hybrid/bench/report"
)

// entrant is a contestant that is set up: once, or as a fleet.
type entrant struct {
	kind   peer.Kind
	nodes  []peer.Limiter
	server *redisd.Server // its store; nil without one

	denied, failed atomic.Int64
}

// prefixes make names in Redis that no other entrant has.
var prefixes atomic.Int64

// enter sets a contestant up, with so many nodes.
func enter(kind peer.Kind, server *redisd.Server, addr string, nodes int, limit peer.Limit, keys int) (*entrant, error) {
	e := &entrant{kind: kind, server: server}
	setup := peer.Setup{
		Limit: limit, Redis: addr, Keys: keys, Servers: nodes,
		Prefix: fmt.Sprintf("bench%d:", prefixes.Add(1)),
	}
	for range nodes {
		lim, err := kind.Open(setup)
		if err != nil {
			return nil, errors.Join(fmt.Errorf("%s: %w", kind.Name, err), e.close())
		}
		e.nodes = append(e.nodes, lim)
	}
	return e, nil
}

// close names the entrant in what went wrong.
func (e *entrant) close() error {
	var errs []error
	for _, n := range e.nodes {
		if err := n.Close(); err != nil {
			errs = append(errs, fmt.Errorf("%s: %w", e.kind.Name, err))
		}
	}
	return errors.Join(errs...)
}

// ask lets a node decide; what does not pass is counted.
func (e *entrant) ask(node int, key string) bool {
	ok, err := e.nodes[node].Allow(key)
	if err != nil {
		e.failed.Add(1)
	} else if !ok {
		e.denied.Add(1)
	}
	return ok
}

// forget starts the counts anew.
func (e *entrant) forget() { e.denied.Store(0); e.failed.Store(0) }

// row is the entrant's line of a table.
func (e *entrant) row(values ...float64) report.Row {
	return report.Row{Name: e.kind.Name, Role: role(e.kind), Values: values}
}

func role(k peer.Kind) report.Role {
	switch {
	case k.Floor:
		return report.Floor
	case k.Module == "":
		return report.Ours
	default:
		return report.Peer
	}
}

var none = math.NaN()

// failures is a note on an entrant some of whose calls had no answer.
func (e *entrant) failures(calls float64, when string) []string {
	n := e.failed.Load()
	if n == 0 {
		return nil
	}
	return []string{fmt.Sprintf("%s: %s %% of the calls ended in an error %s", e.kind.Name, report.Number(100*float64(n)/calls), when)}
}

// kinds are the contestants in a place.
func kinds(place peer.Place) (list []peer.Kind) {
	for _, k := range peer.All() {
		if k.Place.Has(place) {
			list = append(list, k)
		}
	}
	return list
}

func closeAll(entrants []*entrant) error {
	var errs []error
	for _, e := range entrants {
		errs = append(errs, e.close())
	}
	return errors.Join(errs...)
}

// usage runs f, and returns what the entrant's server did meanwhile.
func (e *entrant) usage(ctx context.Context, f func()) (redisd.Usage, error) {
	if e.server == nil {
		f()
		return redisd.Usage{}, nil
	}
	before, err := e.server.Usage(ctx)
	if err != nil {
		return redisd.Usage{}, err
	}
	f()
	after, err := e.server.Usage(ctx)
	return after.Since(before), err
}
