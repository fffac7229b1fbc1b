package key

import "math"

// decaying is a count of which older parts count less: exponentially weighted, with a
// time constant that each call names. At a steady rate λ it settles at λ times that
// constant; after a silence it counts what has come since.
type decaying struct {
	count float64
	at    int64 // ns, when count was last brought up to date
}

// add counts what has come between d.at and now, spread evenly.
func (d *decaying) add(n float64, now, constant int64) {
	now = max(now, d.at) // callers read the clock before they have the lock
	x := float64(now-d.at) / float64(max(constant, 1))
	weight := 1.0
	if x > 1e-9 {
		weight = -math.Expm1(-x) / x
	}
	d.count = d.count*math.Exp(-x) + n*weight
	d.at = now
}

// over returns what is expected in a span of ns.
func (d *decaying) over(span, constant int64) float64 {
	return d.count * float64(span) / float64(max(constant, 1))
}

// demand answers: how much will be asked for in the next horizon?
//
// Requests on the slice are not counted one by one: what they took shows in the cell,
// and counted says how much of that is in the demand already.
type demand struct {
	tokens   decaying // attempted, admitted or denied; its constant is the plan's horizon
	unit     int64    // tokens; grants must be multiples of it: the largest cost lately
	largest  int64    // tokens; the largest cost since the last settle
	attempts int64    // tokens attempted since the last settle
	counted  int64    // tokens of the lease's unreported ones that are in the demand
	askedAt  int64    // ns, the last request that needed the store
}

// attempt adds tokens to the demand.
func (d *demand) attempt(tokens, now, horizon int64) {
	d.tokens.add(float64(tokens), now, horizon)
	d.attempts += tokens
}

// noteCost remembers the largest cost.
func (d *demand) noteCost(cost int64) { d.largest = max(d.largest, cost) }

// slice counts what was taken from the slice, of which unreported tokens are spent by
// now and the largest cost is known. It returns the tokens taken since the last call and how
// many requests that were at least: with the largest cost their number is never
// overstated, so operations stay within requests.
func (d *demand) slice(unreported, largest int64) (taken, requests int64) {
	taken = max(unreported-d.counted, 0)
	d.counted = unreported
	if taken > 0 {
		d.noteCost(largest)
	}
	cost := max(largest, d.unit)
	return taken, (taken + cost - 1) / cost
}

// settled begins the time to the next settle.
func (d *demand) settled() { d.attempts = 0 }

// nextUnit moves the unit towards the costs seen since the last settle.
func (d *demand) nextUnit() {
	d.unit = max(d.largest, (d.unit+1)/2)
	d.largest = 0
}
