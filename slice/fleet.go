package slice

// Fleet is the live nodes of one limiter, as the store's registry has them.
type Fleet struct {
	Limiter string // whose fleet

	// Filled in by a heartbeat.
	Members []string // live member names in ascending order, this node's own included
	Joined  bool     // this heartbeat made a registration: the node was new, or its last one had lapsed
	Err     error
	Refused bool // the store is there, and refused: perhaps this alone, for want of a right
	Lone    bool // the store is well and refused this registry alone: a key of the wrong type
}

// Mark says that an account is scarce: a request of Cost tokens was refused
// although the tokens exist, in slices of other nodes.
type Mark struct {
	Account string // the key in the store
	Cost    int64  // tokens, the cost that was refused
	At      int64  // microseconds of the store's clock
	Paid    bool   // the requests of who asks have paid for one return
}
