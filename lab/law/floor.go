package law

import "math"

// missed is the part of a key's requests on one node that find its floor empty: a
// bucket of so many tokens that earns as much in a time in which load requests come
// per token. It is the loss of a queue with room for that many (M/D/1/K), by the
// usual approximation from the tail of the queue without bounds.
//
// That tail is P = (1−x)/(x·e^θ−1) · e^(−θ(c−1)) for load x, where θ is the other
// root of x·(e^θ−1) = θ, and the loss (1−x)·P/(1−x·P) = (1−x)/(1/P−x).
func missed(load, tokens float64) float64 {
	if math.Abs(load-1) < 1e-3 {
		return 1 / max(2*tokens-1.0/3, 2) // the limit, where the quotients are 0/0
	}
	theta := decay(load)
	tail := (load + theta - 1) / (1 - load) * math.Exp(theta*(tokens-1)) // 1/P
	if (tail < 1/load) == (load < 1) {
		tail = 1 / load // what it is with a single token
	}
	return (1 - load) / (tail - load)
}

// decay is the root of load·(e^θ−1) = θ that is not 0: above it for a load below
// 1, below it for one above.
func decay(load float64) (theta float64) {
	lo, hi := 0.0, 1.0
	excess := func(t float64) float64 { return load*math.Expm1(t) - t }
	if load < 1 {
		for lo = -math.Log(load); excess(hi) < 0; hi *= 2 { // lowest where its slope is 0
		}
	} else {
		lo, hi = -load, -math.Log(load)
	}
	for range 60 {
		mid := (lo + hi) / 2
		if (excess(mid) < 0) == (load < 1) {
			lo = mid
		} else {
			hi = mid
		}
	}
	return (lo + hi) / 2
}
