package law

import "time"

// What it costs Redis, in processor time (measured on Redis 7.0, docs/benchmarks.md:
// 20 µs for an account alone in a call, 6 to 7 µs for each of 64): so much for each
// call, whatever it carries, so much for each account in it, and so much for each mark
// that a node reads.
const (
	PerCall    = 13_500 * time.Nanosecond
	PerAccount = 6500 * time.Nanosecond
	PerMark    = 490 * time.Nanosecond
)

// Busy is the part of a second that one Redis spends on it.
func (c Cost) Busy() float64 {
	return c.Operations()*PerAccount.Seconds() + c.Calls*PerCall.Seconds() + c.Polls*c.Listed*PerMark.Seconds()
}

// Enough is how busy one Redis may be: it has one core, and half of it is for what
// comes at once, and for others.
const Enough = 0.5

// MostRate is where One stops looking, in requests per second.
const MostRate = 1e8

// One is the largest rate of requests that one Redis bears, in whole thousands and up
// to MostRate; 0 if it does not bear a thousand.
func (s Service) One() float64 {
	lo, hi := 0, int(MostRate/1000)+1
	for hi-lo > 1 {
		mid := (lo + hi) / 2
		if s.Rate = 1000 * float64(mid); s.Predict().Busy() <= Enough {
			lo = mid
		} else {
			hi = mid
		}
	}
	return 1000 * float64(lo)
}
