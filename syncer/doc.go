// Package syncer keeps the slices of one node and the accounts in the store in
// step. It decides when an account is settled, what is reported, asked for and
// given back, and what a request is told when the store does not answer.
//
//	request ──▶ Account.Ask ──▶ batch ──▶ Store ──▶ Account.apply ──▶ slice
//	                 ▲            ▲
//	          (waits at most   agenda: refills, renewals, returns,
//	           StoreTimeout)   paced settles; one loop per node
//
// A Syncer is one node. It talks to the store through the interface [Store],
// and to nobody else. Settles of all limiters go through one dispatcher for each part
// of the store that can fail alone ([Sharded]; as a rule it is all one), which batches
// what is ready whenever a call can be made. With a breaker and heartbeats of its own
// it makes a lane.
//
// Times are nanoseconds of the node's monotonic clock unless a name says
// otherwise; the store's own clock counts microseconds.
package syncer
