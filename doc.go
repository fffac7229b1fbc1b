// Package hybrid limits how often keys may act (API keys, users, addresses)
// across a fleet of servers, from memory.
//
// Each server is a [Node]. For every key that it sees it holds a slice: tokens
// of the key's shared account in Redis, taken in advance. It admits from the
// slice with one atomic operation, reconciles with Redis on a timer and in
// batches, and asks Redis first where the limit is near.
//
//	                           one Node per server
//	           ┌──────────────────────────────────────────────────────┐
//	           │                                                      │
//	Allow ────▶│ slice ──no──▶ deny memo ──no──▶ floor ──no──▶ exact ─┼─▶ Redis
//	           │   │ one CAS       │ a refusal     │ a key      │     │   one small
//	           │   ▼               ▼ that holds    ▼ far below  ▼     │   string per
//	Result ◀───┼─ allowed        denied          allowed     either   │   key, one Lua
//	           │   ▲                                                  │   script
//	           │   └──── grants ◀──── syncer: one loop, batches ◀─────┼─▶
//	           └──────────────────────────────────────────────────────┘
//
// # Guarantees
//
// Over any interval of length t the fleet admits at most (1+over)·(B + r·t) of a
// token bucket with burst B and rate r, and (1+over)·L in each fixed window of L.
// The part over is chosen with [Accuracy]: 0 for [Strict] and [Exact], 0.1 for
// [Balanced]. docs/accuracy.md has the proof and what it assumes.
//
// Redis executes at most one operation (an account settled) per request,
// whatever the traffic; far from the limit, and far beyond it, nearly none. A call of
// Charge or Refund is a request of its own, and a call of AllowAll with k limits costs at
// most 2k − 1: what it took of the others is put back at once when one denies. Only
// Flush and Close settle what no request has paid for: each key once.
//
// A call waits for Redis for Options.StoreTimeout at most. What it gets then is
// the limiter's [FailurePolicy], never an error. docs/operations.md has the contract,
// fault by fault, and how to set up the client and Redis.
//
// # More than Allow
//
//   - Requests that cost more than one token: [Limiter.AllowN]. Costs that are known
//     only later: [Limiter.Refund] and [Limiter.Charge].
//   - To wait for a turn instead of being denied: [Limiter.Wait] and [Limiter.WaitN].
//   - Several limits that must all admit: [Node.AllowAll].
//   - Keys with limits of their own: LimitFor of [LimiterOptions]. Another limit under
//     load: [Limiter.SetLimit].
//   - To watch before you deny: Shadow of [LimiterOptions].
//   - Why a key is denied, and which are: [Limiter.Inspect] and [Limiter.Denied]. How
//     the node is: [Node.Stats].
//
// # Out of scope
//
// Limits without Redis (use golang.org/x/time/rate), concurrency limits and
// queues, exact global order between servers, quotas that must survive the loss
// of Redis's data.
package hybrid
