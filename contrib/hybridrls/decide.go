package hybridrls

import (
	"context"
	"slices"
	"sync"

	commonv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/common/ratelimit/v3"
	rlsv3 "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"

	"github.com/hybridlimit/hybrid"
)

// hit is what one descriptor asks of one limit.
type hit struct {
	descriptor int
	rule       *rule
	limiter    *hybrid.Limiter
	limit      hybrid.Limit
	key        string
	n          int64
}

// plan is what a request asks for, in the order in which it is done: hits to give
// back, limits to look at, limits to charge, and limits in shadow mode to charge
// once the others have admitted.
type plan struct {
	refunds, looks, charges, shadows []hit
}

// answer is what a limit said to a hit.
type answer struct {
	hit    *hit
	result hybrid.Result
}

// verdict is what became of a request: the answers that may be shown.
type verdict struct {
	answers []answer
	denied  bool
}

// plan works out what a request asks for. It waits for a limiter that is being made
// again, and fails only if that does.
func (s *Server) plan(ctx context.Context, d *domain, req *rlsv3.RateLimitRequest) (*plan, error) {
	p := &plan{}
	for i, one := range req.GetDescriptors() {
		n := hitsOf(req, one)
		if key, ok := overrideKey(one); ok && d.overrides != nil {
			if err := p.add(ctx, hit{descriptor: i, rule: d.overrides, key: key, n: n}, one); err != nil {
				return nil, err
			}
			continue
		}
		rules := d.root.find(one.GetEntries())
		if len(rules) == 0 {
			s.counters.unmatched.Add(1)
		}
		for _, r := range rules {
			if r.slot == nil {
				continue // unlimited
			}
			if err := p.add(ctx, hit{descriptor: i, rule: r, key: r.key(one.GetEntries()), n: n}, one); err != nil {
				return nil, err
			}
		}
	}
	return p, nil
}

// add sorts a hit in by what is to be done with it.
func (p *plan) add(ctx context.Context, h hit, d *commonv3.RateLimitDescriptor) (err error) {
	if h.limiter, err = h.rule.slot.get(ctx); err != nil {
		return err
	}
	h.limit = h.rule.limit
	if h.rule.slot.settings.byKey {
		h.limit, _ = overrideLimit(h.key, h.rule.slot.settings.window)
	}
	switch {
	case d.GetIsNegativeHits():
		p.refunds = append(p.refunds, h)
	case h.rule.shadow && h.n == 0: // nobody would see it
	case h.n == 0:
		p.looks = append(p.looks, h)
	case h.rule.shadow:
		p.shadows = append(p.shadows, h)
	default:
		p.charges = append(p.charges, h)
	}
	return nil
}

// hitsOf is what a descriptor costs. The request's 0 is no number: it means 1.
func hitsOf(req *rlsv3.RateLimitRequest, d *commonv3.RateLimitDescriptor) int64 {
	if own := d.GetHitsAddend(); own != nil {
		return int64(min(own.GetValue(), mostCount)) // more fits no limit either
	}
	return max(int64(req.GetHitsAddend()), 1)
}

// run carries a plan out.
func (p *plan) run(ctx context.Context, node *hybrid.Node) (*verdict, error) {
	v := &verdict{}
	for i := range p.refunds {
		h := &p.refunds[i]
		if err := h.limiter.Refund(h.key, h.n); err != nil {
			return nil, err
		}
	}
	if err := v.look(ctx, p.looks); err != nil || v.denied {
		return v, err
	}
	if err := v.charge(ctx, node, p.charges); err != nil || v.denied {
		return v, err
	}
	shadows, _ := checks(p.shadows)
	_, err := node.AllowAll(ctx, shadows...) // who would be denied is counted there
	return v, err
}

// look asks how limits stand, all at once: each may wait for Redis.
func (v *verdict) look(ctx context.Context, hits []hit) error {
	if len(hits) == 0 {
		return nil
	}
	answers, errs := make([]answer, len(hits)), make([]error, len(hits))
	ask := func(i int) {
		r, err := hits[i].limiter.Peek(ctx, hits[i].key)
		answers[i], errs[i] = answer{&hits[i], r}, err
	}
	var wg sync.WaitGroup
	for i := 1; i < len(hits); i++ {
		wg.Go(func() { ask(i) })
	}
	ask(0)
	wg.Wait()
	for i, a := range answers {
		if errs[i] != nil {
			return errs[i]
		}
		v.denied = v.denied || !a.result.Allowed
	}
	v.answers = append(v.answers, answers...)
	return nil
}

// charge takes from all limits or from none. What is spent already is charged also
// where it does not fit, unless another limit denies.
func (v *verdict) charge(ctx context.Context, node *hybrid.Node, hits []hit) error {
	if len(hits) == 0 {
		return nil
	}
	all, of := checks(hits)
	r, err := node.AllowAll(ctx, all...)
	if err != nil {
		return err
	}
	for i := range hits {
		if of[i] == int(r.Check) {
			v.answers = append(v.answers, answer{&hits[i], r})
		}
	}
	if r.Allowed {
		return nil
	}
	v.denied = true
	if !v.answers[len(v.answers)-1].hit.rule.overdraw {
		return nil
	}
	if others, err := othersDeny(ctx, hits); others || err != nil {
		return err
	}
	for i := range hits {
		if h := &hits[i]; h.rule.overdraw {
			if err := h.limiter.Charge(h.key, h.n); err != nil {
				return err
			}
		}
	}
	return nil
}

// othersDeny asks the limits without overdraw, when one with it has denied. AllowAll
// names one limit that denies, and which of several depends on their order and on
// what the node remembers: what is charged must not.
func othersDeny(ctx context.Context, hits []hit) (bool, error) {
	var others []hit
	for i := range hits {
		if !hits[i].rule.overdraw {
			others = append(others, hits[i])
		}
	}
	all, of := checks(others)
	looked := &verdict{}
	err := looked.look(ctx, others)
	for i, a := range looked.answers {
		known := a.result.Path != hybrid.PathFallback // else the rule's on_failure has decided
		if !a.result.Allowed || known && a.result.Remaining < all[of[i]].N {
			return true, err
		}
	}
	return false, err
}

// checks are what hits ask for, and of which check each hit is a part: those of one
// limit and key are one, or the second would be denied what the first holds until it
// is put back.
func checks(hits []hit) (all []hybrid.Check, of []int) {
	all, of = make([]hybrid.Check, 0, len(hits)), make([]int, len(hits))
	for i := range hits {
		h := &hits[i]
		of[i] = slices.IndexFunc(all, func(c hybrid.Check) bool { return c.Limiter == h.limiter && c.Key == h.key })
		if of[i] < 0 {
			of[i] = len(all)
			all = append(all, hybrid.Check{Limiter: h.limiter, Key: h.key})
		}
		all[of[i]].N += h.n
	}
	return all, of
}
