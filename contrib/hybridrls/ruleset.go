package hybridrls

import (
	"context"
	"fmt"
	"sync"

	"github.com/hybridlimit/hybrid"
)

// ruleset is the rules of one moment. It does not change; slots that are being made
// again fill up.
type ruleset struct {
	domains map[string]*domain
	slots   map[string]*slot // by the limiter's name
	rules   int
}

type domain struct {
	root      branch
	overrides *rule // nil: limits that come with descriptors are ignored
}

// slot is a place for a limiter. In a new ruleset it may be empty for as long as
// it takes to close the limiter that had its name before.
type slot struct {
	name     string
	settings settings

	limit hybrid.Limit // under Server.applying

	filled  chan struct{} // closed once the fields below are set
	limiter *hybrid.Limiter
	err     error
}

func newSlot(name string, limit hybrid.Limit, s settings) *slot {
	return &slot{name: name, limit: limit, settings: s, filled: make(chan struct{})}
}

// fill makes the limiter.
func (s *slot) fill(node *hybrid.Node) error {
	opts := &hybrid.LimiterOptions{Accuracy: s.settings.accuracy, OnFailure: s.settings.onFailure, Shadow: s.settings.shadow}
	if s.settings.byKey {
		window := s.settings.window
		opts.LimitFor = func(key string) (hybrid.Limit, bool) { return overrideLimit(key, window) }
	}
	s.limiter, s.err = node.Limiter(s.name, s.limit, opts)
	close(s.filled)
	return s.err
}

// get returns the limiter. It waits for one that is being made again until ctx ends.
func (s *slot) get(ctx context.Context) (*hybrid.Limiter, error) {
	select {
	case <-s.filled:
		return s.limiter, s.err
	default:
	}
	select {
	case <-s.filled:
		return s.limiter, s.err
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// change is what leads from one ruleset to the next.
type change struct {
	next   *ruleset
	fresh  []*slot    // names that were not there
	limits []newLimit // to set in place
	again  []pair     // other settings under the same name
	gone   []*slot    // names that are no longer there
}

type newLimit struct {
	slot  *slot
	limit hybrid.Limit
}

type pair struct{ old, new *slot }

// planChange works out a change. It changes nothing that is in force.
func planChange(now *ruleset, to *Rules) *change {
	c := &change{next: &ruleset{domains: map[string]*domain{}, slots: map[string]*slot{}, rules: to.Len()}}
	for i := range to.domains {
		spec := &to.domains[i]
		d := &domain{}
		for j := range spec.rules {
			c.addRule(now, d, spec.name, &spec.rules[j])
		}
		if o := &spec.overrides; !o.ignore {
			// Each key says its own limit: this one is none's.
			s := c.slot(now, spec.name+"/"+overridesName, hybrid.PerSecond(0), o.settings)
			d.overrides = &rule{name: overridesName, slot: s, shadow: o.settings.shadow}
		}
		c.next.domains[spec.name] = d
	}
	for name, s := range now.slots {
		if c.next.slots[name] == nil && s.limiter != nil {
			c.gone = append(c.gone, s)
		}
	}
	return c
}

func (c *change) addRule(now *ruleset, d *domain, domainName string, spec *ruleSpec) {
	r := &rule{name: spec.name, limit: spec.limit, open: openEntries(spec.match), overdraw: spec.overdraw, shadow: spec.settings.shadow}
	if !spec.unlimited {
		r.slot = c.slot(now, domainName+"/"+spec.name, spec.limit, spec.settings)
	}
	at := d.root.at(spec.match)
	at.rules = append(at.rules, r)
}

// slot finds the place for a limiter: that which is in force, if its settings stay.
func (c *change) slot(now *ruleset, name string, limit hybrid.Limit, s settings) *slot {
	have := now.slots[name]
	switch {
	case have == nil || have.limiter == nil: // or could not be made again
		have = newSlot(name, limit, s)
		c.fresh = append(c.fresh, have)
	case have.settings != s:
		made := newSlot(name, limit, s)
		c.again = append(c.again, pair{have, made})
		have = made
	case have.limit != limit:
		c.limits = append(c.limits, newLimit{have, limit})
	}
	c.next.slots[name] = have
	return have
}

// open makes the limiters of new names, all or none.
func (c *change) open(node *hybrid.Node) error {
	for i, s := range c.fresh {
		if err := s.fill(node); err != nil {
			closeAll(c.fresh[:i])
			return fmt.Errorf("hybridrls: limiter %q: %w", s.name, err)
		}
	}
	return nil
}

// setLimits sets the limits that have changed. It fails only if the node is closed.
func (c *change) setLimits() error {
	for _, l := range c.limits {
		if err := l.slot.limiter.SetLimit(l.limit); err != nil {
			return fmt.Errorf("hybridrls: limiter %q: %w", l.slot.name, err)
		}
		l.slot.limit = l.limit
	}
	return nil
}

// finish closes what nobody uses any more, and makes again what has other settings.
// What Redis does not take back lapses.
func (c *change) finish(node *hybrid.Node) error {
	errs := make([]error, len(c.again))
	var wg sync.WaitGroup
	for i, p := range c.again {
		wg.Go(func() {
			_ = p.old.limiter.Close()
			if err := p.new.fill(node); err != nil {
				errs[i] = fmt.Errorf("hybridrls: limiter %q: %w", p.new.name, err)
			}
		})
	}
	closeAll(c.gone)
	wg.Wait()
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}

// closeAll closes limiters, all at once: each may take a second while Redis is away.
func closeAll(slots []*slot) {
	var wg sync.WaitGroup
	for _, s := range slots {
		wg.Go(func() { _ = s.limiter.Close() })
	}
	wg.Wait()
}
