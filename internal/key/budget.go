package key

// budget answers: may this key cost the store an operation now?
//
// Every operation is paid for by requests: the budget is the key's requests less its
// operations, never below 0. A request's own settle is paid by that request. A settle
// that the node sends on its own (a refill, a renewal, a return, a poll) needs a
// budget of 1. So the store never executes more operations than there were requests,
// whatever the traffic.
type budget struct {
	operations int64
	paid       bool // the settle under way was taken from it
}

// mostSaved caps the budget, so that a long calm does not pay for a storm of
// operations.
const mostSaved = 1 << 10

// add adds requests.
func (b *budget) add(requests int64) { b.operations = min(b.operations+requests, mostSaved) }

// covers reports whether one operation is paid for.
func (b *budget) covers() bool { return b.operations >= 1 }

// spend takes one operation.
func (b *budget) spend() {
	b.paid = b.covers()
	b.operations = max(b.operations-1, 0)
}

// refund returns what a settle took that was not sent.
func (b *budget) refund() {
	if b.paid {
		b.add(1)
	}
}
