package main

import (
	"context"

	"github.com/hybridlimit/hybrid"
)

// The limits as the service starts with them.
var (
	// Wide: many people may share an address.
	perAddress = hybrid.PerMinute(3000).WithBurst(1000)

	free       = hybrid.PerSecond(5)
	pro        = hybrid.PerSecond(50)
	enterprise = hybrid.PerSecond(500)
)

// gate is what a request has to pass. The edge knows an address and nothing else:
// it keeps floods out, before anybody looks up who asks. The handler knows the
// customer, whose plan must be kept to the request.
type gate struct {
	edge, handler *hybrid.Limiter
}

func newGate(node *hybrid.Node, p *plans) (*gate, error) {
	// Coarse and cheap: most addresses are far below their limit and never reach
	// Redis (Balanced, the default), and without Redis the edge is not in the way.
	edge, err := node.Limiter("edge", perAddress, &hybrid.LimiterOptions{OnFailure: hybrid.FailOpen})
	if err != nil {
		return nil, err
	}
	// Precise: never more than the plan.
	handler, err := node.Limiter("handler", free, &hybrid.LimiterOptions{Accuracy: hybrid.Strict, LimitFor: p.limitFor})
	if err != nil {
		return nil, err
	}
	return &gate{edge: edge, handler: handler}, nil
}

// stage is how far a request came.
type stage int

const (
	atEdge stage = iota
	atHandler
	served
)

// pass lets a request through, or says where it was denied.
func (g *gate) pass(ctx context.Context, address, customer string) (stage, error) {
	if res, err := g.edge.Allow(ctx, address); err != nil || !res.Allowed {
		return atEdge, err
	}
	if res, err := g.handler.Allow(ctx, customer); err != nil || !res.Allowed {
		return atHandler, err
	}
	return served, nil
}
