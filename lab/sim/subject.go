// Package sim offers the same requests to rate limiters of any kind, in virtual
// time, and judges what each of them made of it.
package sim

// Subject is a fleet of nodes that share limits: what an experiment is about.
// The library is one; the schemes that it is compared with are others.
type Subject interface {
	// Ask offers one request to a node and returns when it has its answer; it
	// sleeps in virtual time for what the answer had to wait for. It is safe
	// for concurrent use.
	Ask(node int, key string, cost int64) Answer

	// Cost is what the subject has cost so far.
	Cost() Cost

	// Close ends all goroutines of the subject.
	Close()
}

// Answer is what a request was told.
type Answer struct {
	Allowed bool
	Blocked bool  // it waited for a reply of the store
	At      int64 // when the decision counts, ns: when the store executed it, or when the node decided alone
	Policy  bool  // the store did not answer, and what is to be done then was decided beforehand
	Floor   bool  // a share of the limit admitted it that nobody else has a part in
}

// Cost counts what requests cost the store.
type Cost struct {
	Operations int64 // accounts settled, or whatever the scheme does to a key in the store
	Commands   int64 // commands that carried them
	RoundTrips int64 // pipelines that carried the commands
	Other      int64 // commands that carried none: heartbeats and the like
	Blocked    int64 // requests whose answer waited for the store

	By             ByReason // operations; of the library only
	Polls          int64    // round trips that carried no operation; of the library only
	Sent, Received int64    // bytes to the store and from it; of the library only
}

func (c Cost) minus(o Cost) Cost {
	return Cost{
		Operations: c.Operations - o.Operations,
		Commands:   c.Commands - o.Commands,
		RoundTrips: c.RoundTrips - o.RoundTrips,
		Other:      c.Other - o.Other,
		Blocked:    c.Blocked - o.Blocked,
		By:         c.By.minus(o.By),
		Polls:      c.Polls - o.Polls,
		Sent:       c.Sent - o.Sent,
		Received:   c.Received - o.Received,
	}
}
