// Package exact talks to Redis: one Lua script settles accounts, and every
// admission that the script makes is exact.
//
//	Settle ──EVALSHA settle.lua──▶ Redis   a batch of accounts, what nodes report and ask
//	Take, Peek, Reset ──▲                  one account, no slice
//	Heartbeat, Leave ──EVALSHA, ZREM──▶    the fleet of a limiter
//	Probe ──EVALSHA settle.lua──▶          whether a part of Redis settles
//	Mark, Marks ──ZADD, ZRANGEBYSCORE──▶   accounts whose tokens are stuck in slices
//
// A [Store] can be used alone: a limiter whose every decision asks Redis. The
// other packages use it to prepay slices.
//
// # Exactly once or never
//
// A settle moves tokens, so running it twice would charge twice. Every settle
// is sent at most once; afterwards it is known to have run, known not to have
// run, or unknown ([slice.Outcome]). Nothing here retries: a client's own
// retries (on by default in go-redis) are switched off for these commands,
// redirections of a cluster are followed.
//
// A call ends with its context if the client has ContextTimeoutEnabled, which is not
// the default, and otherwise lasts as long as the client lets it.
//
// Out of scope: batching over time and breakers.
package exact
