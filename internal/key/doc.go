// Package key is the lease protocol on one node: the state of one key, and
// everything that is decided about it. It is pure. Numbers go in (the moment, the
// fleet's size, a cost, the store's reply), values come out (an answer, a
// [slice.Settle], the next moment to look). It takes no lock, reads no clock, starts
// no goroutine, and knows neither the store nor other keys. Package syncer is the
// shell around it, which has the lock, the clock, the timers and the store.
//
// [State] is the whole, and state.go shows how its parts work together:
//
//	Admit     a request that no slice served: an answer, or a place in the next settle
//	Compose   the settle to send now
//	Apply     the store's reply: tokens, answers, what is remembered of a refusal
//	Look      what the node does when a timer says so: poll, renew, return, report
//	Next      when to look again
//
// Each part has one question, its own methods and no pointer to another:
//
//	holding   what do we hold, and what is on lease elsewhere?
//	demand    how much will be asked for in the next horizon?
//	budget    may this key cost the store an operation now?
//	polling   of an exhausted key: when do we ask again, and what do callers hear until then?
//	debt      what has been used that the store does not know of?
//	fallback  what may we admit while the store is silent?
//	inflight  what is under way, and for whom?
//
// Beside the state, in the account where requests find them without the lock, are
// the slice's cell, the [Floor] and what is [Known] of the account.
//
// Words: an account is a key's record in the store. A slice is the tokens that a
// node took from it in advance, under a lease that ends with its epoch. A settle is
// one operation on one account: it reports, charges, admits and lends. A floor is
// what a node may admit for a cold key without asking.
//
// Times are nanoseconds of the node's monotonic clock; the store's clock counts
// microseconds since the Unix epoch.
package key
