package key

import (
	"time"

	"github.com/hybridlimit/hybrid/slice"
)

// holding answers: what do we hold, and what is on lease elsewhere?
type holding struct {
	lease      slice.Lease
	lent       int64 // tokens of the account on lease to all nodes, last known
	idleTokens int64 // tokens in the cell when the node last looked
	idleSince  int64 // ns, when it last saw them change
}

// doubtIsOver reports whether a slice in doubt has served its time: its lease is over,
// or its last token is used. Then a new one can begin; what the store still has of the
// old one it forgets with the lease.
func (h *holding) doubtIsOver(cell *slice.Cell, dead *slice.Watermark) bool {
	return h.lease.InDoubt() && (cell.Expired(dead) || cell.Tokens() == 0)
}

// used notes that the slice was in use at a moment.
func (h *holding) used(tokens, now int64) { h.idleTokens, h.idleSince = tokens, now }

// look notes whether the slice was used since the last look.
func (h *holding) look(tokens, now int64) {
	if tokens != h.idleTokens {
		h.used(tokens, now)
	}
}

// expiry returns the local tick at which a granted lease must end. It counts from
// before the call entered the client, when the store's now was still to come.
func expiry(g *slice.Grant, sentAt int64) slice.Tick {
	life := time.Duration(g.Life) * time.Microsecond
	return slice.TickAt(sentAt + int64(life-slice.Guard(life)))
}
