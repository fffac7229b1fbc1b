package law

import "math"

// What is on the wire: Redis's protocol, for keys of seven bytes and limits as usual.
const (
	callSent, callReceived       = 135, 25 // a call that carries accounts
	accountSent, accountReceived = 65, 48
	pollSent, listedReceived     = 100, 44 // a poll of the marks, and each account in its answer
	markSent, markReceived       = 300, 16
	beatSent, memberReceived     = 170, 27 // a heartbeat, and each node that its answer lists
)

// carry fills in what the operations travel by: a call for each that a request waits
// for, and a few per tick for all others of a node, since nobody waits for them. A
// node that is in touch with the store also publishes its marks of scarce accounts
// and reads those of all at each tick; and each node registers once a second.
func (s Service) carry(c *Cost) {
	m, perSecond := float64(s.Nodes), 1/s.Sync.Seconds()
	shared := func(events, most float64) float64 { return m * most * -math.Expm1(-events/m/most) }
	carrying := c.Asked + shared(c.Refilled+c.Paced, callsPerTick*perSecond)
	marking := shared(c.Marks, perSecond)
	c.Polls = m * perSecond * -math.Expm1(-c.Operations()/m*s.horizon())
	c.Listed = min(c.Listed, mostListed)
	c.Calls = carrying + c.Polls + marking + m
	c.Sent = callSent*carrying + accountSent*c.Operations() + pollSent*c.Polls + markSent*marking + beatSent*m
	c.Received = callReceived*carrying + accountReceived*c.Operations() + listedReceived*c.Listed*c.Polls +
		markReceived*marking + memberReceived*m*m
}

// callsPerTick is how many calls a node makes in a tick at most on its own accord:
// what becomes due together shares one.
const callsPerTick = 2

// The sweep looks at a 600th of the keys at each tick of 100 ms, and at some more.
const (
	sweepTicks = 600
	sweepLeast = 16
)

// remember is how many keys a node remembers: those that it had requests for since
// the sweep found that they were as new ones would be, when their floors had earned
// a token again, or, without floors, when the node had not asked for a horizon. The
// more keys there are, the longer the sweep takes for all.
func (s Service) remember() (keys float64) {
	earned := s.horizon()
	if n := s.node(1); n.floor >= 1 {
		earned = 1 / n.earns
	}
	for range 30 {
		round := keys * sweepTicks / (keys + sweepTicks*sweepLeast) * s.Sync.Seconds()
		next := 0.0
		s.each(func(rate, alike float64) {
			next += alike * -math.Expm1(-rate/float64(s.Nodes)*(earned+round))
		})
		if keys, next = next, keys; math.Abs(keys-next) < 1e-3*keys {
			break
		}
	}
	return keys
}
