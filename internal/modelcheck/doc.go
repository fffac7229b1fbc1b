// Package modelcheck searches the lease protocol for histories that break it.
// Nothing in production imports it.
//
// What is real: the account is [ledger.Account], which is held equal to the
// script, and a node's slice is a [slice.Lease] over a [slice.Cell] with a
// [slice.Watermark]. What is a model: how settles travel, what Redis does with a
// key (its time to live, its loss, a replica that is behind), clocks, and when a
// node does what. There it may do more than the syncer ever would: send any of
// the setup's settles at any moment, wait for a reply as long as the setup lets
// it, or stop for good.
//
// A [World] is a value, and a step of it makes another. [Search] visits all that
// a [Setup] leads to, in the order of their distance from the start, so that
// what it finds broken is broken by the shortest way. Many setups lead to
// finitely many worlds, as times count from now: these are searched whole. Larger
// worlds are drawn at random. Checked in each:
//
//   - promise: in every interval no more is admitted than B + r·t, or the quota
//     of each window; after a fault, no more beyond that than the fault permits;
//   - used >= lent, in what is stored;
//   - lent >= held: what live slices may still spend, and what is on its way to
//     or from one, is lent;
//   - charged: a settle adds to what is used and not lent all that it admits and
//     reports as spent;
//   - known: while the store is well, the account has as much used as was admitted and
//     charged and has neither drained nor been given back nor is still to be told;
//     and for the promise, time in which that is more than B earns nothing;
//   - once: while the store is well no token that was lent is charged again;
//   - ttl: a key lives until it is empty;
//   - unreported >= 0: a node's own ledger;
//   - asks: were nothing to go wrong any more, of nodes that keep asking for a
//     cost one would be admitted: at once if it fits when they have returned what
//     they hold, else when leases have ended and the account has drained;
//   - free: were all to fall silent, nothing would be lent after two epochs, and
//     nothing be stored once the rest has drained.
//
// A [Flaw] is a rule of the protocol left out, to see that its absence is found.
// What the promise leaves out, because a fault costs it, is among the departures in
// the tests.
//
// Assumed are the promise's own assumptions: a node's clock and the timer of
// its watermark are late by less than the guard in all. Left out are floors and
// memberships (package precheck), the failure policy, Reset, a limit that turns
// from a bucket into a window, several keys, and damaged values, which are as
// good as lost.
//
//	go test -v ./internal/modelcheck                             # as far as a test may take
//	go test -v ./internal/modelcheck -run Every -depth 20        # every world to this depth
//	go test -v ./internal/modelcheck -run Every -depth -1 -worlds 4000000 -timeout 0
//	go test -v ./internal/modelcheck -run Random -rapid.checks 100000
package modelcheck
