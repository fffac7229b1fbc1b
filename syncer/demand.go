package syncer

import "math"

// demand is how many tokens were attempted (admitted or denied) on one account
// of this node, with older attempts counting less: an exponentially weighted
// count with the horizon as its time constant. At a steady rate λ it settles
// at λ·h, which is just the target of a slice; after a silence it counts what
// has come since.
type demand struct {
	count float64 // tokens
	at    int64   // ns, when count was last brought up to date
}

// add counts tokens that were attempted between d.at and now, spread evenly.
func (d *demand) add(tokens float64, now, horizon int64) {
	now = max(now, d.at) // callers read the clock before they have the lock
	x := float64(now-d.at) / float64(max(horizon, 1))
	weight := 1.0
	if x > 1e-9 {
		weight = -math.Expm1(-x) / x
	}
	d.count = d.count*math.Exp(-x) + tokens*weight
	d.at = now
}

// over returns the tokens expected in a span of ns.
func (d *demand) over(span, horizon int64) float64 {
	return d.count * float64(span) / float64(max(horizon, 1))
}
