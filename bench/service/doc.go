// Package service measures a whole service: a fleet of limiters in one process, on
// one real Redis beside it, under open load.
//
// # The load
//
// Arrivals are scheduled before the run, as a Poisson stream with keys of Zipf's law
// and a node at random, and depend on no answer. Each call is timed twice: from the
// moment at which it was due, which is what the caller sees, and from the moment at
// which it began, which is what the limiter adds. Nothing that is slow can hide its own
// delay by holding the next arrival back (coordinated omission), because an arrival that
// is late counts from when it was due.
//
// The calls are made by a crew. A goroutine per request would cost more than most of
// the answers do, and one goroutine that makes them all would let a call that waits for
// Redis delay those behind it. So whoever of the crew is awake makes calls inline, one
// due arrival after the other; but before it begins, it sees to it that another is on
// its way: asleep until the next arrival, or made runnable. If the call returns at once,
// as nearly all do, the relief finds nothing to do and rests. If the call blocks, the
// processor that it leaves runs the relief at once, with the next arrival. Where all
// calls block, each costs one switch between goroutines, as in any server. The crew
// grows as far as calls under way demand; when it may not grow any further, arrivals
// wait, and are counted from when they were due.
//
// # The controls
//
// Timers, the scheduler, the garbage collector and Redis on the same processors delay
// any call. How much of that would be there without a limiter is measured beside it: the
// same load on an empty limiter, a function that returns at once, in a run of its own
// (the control), and a few more arrivals at the empty limiter among those of each run
// (the witness).
//
// # The judgement
//
// Each key's admissions are replayed against its bound (internal/oracle). What Redis did
// is told by the nodes and by Redis itself. Peers are met with the same arrivals, the
// same number of clients with the same options, and the same crew.
package service
