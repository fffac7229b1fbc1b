package hybrid

import (
	"time"

	"github.com/hybridlimit/hybrid/exact"
	"github.com/hybridlimit/hybrid/slice"
)

// Limit is how much a key may use: a token bucket (PerSecond … Per) or a fixed
// window (Window). It is a comparable value; its zero value is invalid and is
// refused with ErrInvalidLimit. Counts and bursts are 0 to 2^53, periods 1 µs to
// 2^53 µs (285 years), rounded to whole microseconds. A count of 0 denies everything, Unlimited nothing.
//
// Its methods are those of exact.Limit: WithBurst(b) returns the limit with a
// bucket of b tokens (not for windows); Count, Period and Burst return its parts,
// Windowed whether it is a window, String its text, and Validate the error that
// Node.Limiter would return.
type Limit = exact.Limit

// PerSecond is a token bucket of n tokens that refills at n per second.
func PerSecond(n int64) Limit { return exact.PerSecond(n) }

// PerMinute is a token bucket of n tokens that refills at n per minute.
func PerMinute(n int64) Limit { return exact.PerMinute(n) }

// PerHour is a token bucket of n tokens that refills at n per hour.
func PerHour(n int64) Limit { return exact.PerHour(n) }

// PerDay is a token bucket of n tokens that refills at n per 24 hours.
func PerDay(n int64) Limit { return exact.PerDay(n) }

// Per is a token bucket of n tokens that refills at n per period. Its burst can
// be changed with Limit.WithBurst.
func Per(n int64, period time.Duration) Limit { return exact.Per(n, period) }

// Window is a fixed window: n per period, counted from 0 again at each multiple
// of the period since the Unix epoch (UTC), by the clock of Redis. Across a
// window's edge up to 2n may be admitted in a moment; a token bucket has no edge.
func Window(n int64, period time.Duration) Limit { return exact.Window(n, period) }

// Unlimited is a limit that denies nothing: for the plan of a customer without a limit, or
// to lift one. Its requests are admitted in memory, with PathExact, and Redis hears nothing
// of them; nor of a Charge, so that a limit which comes later begins with a full account.
// Result.Limit and Remaining are 2^53 then; headers of httplimit show no such limit.
func Unlimited() Limit { return exact.Unlimited() }

// Never is the RetryAfter of a cost that can never fit: the longest Duration,
// 292 years. Do not put it into a header.
const Never time.Duration = slice.Never
