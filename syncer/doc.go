// Package syncer is the shell around the lease protocol: it keeps the slices of one node
// and the accounts in the store in step. It is internal to hybrid; use package hybrid.
//
//	request ──▶ Account.Decide ──▶ key.State.Admit     an answer, or a place in the next settle
//	                 │                  ▲
//	                 ▼                  │ Apply
//	timers ──▶ batch.Shard ──▶ Store ──▶ Account.Done ──▶ waiting requests, slice
//
// What is decided about a key is decided in internal/key, which is pure. This package
// has what that must not have: the lock around a key's state, the clock, waiting
// requests, one loop per node with a timer queue, counters, and the order in which a
// limiter ends. internal/batch sends the settles, internal/fleet knows the live nodes.
//
// A [Syncer] is one node, a [Limiter] one of its limiters, an [Account] one key. A
// Syncer talks to the store through the interface [Store] alone.
//
// Times are nanoseconds of the node's monotonic clock unless a name says otherwise; the
// store's own clock counts microseconds.
package syncer
