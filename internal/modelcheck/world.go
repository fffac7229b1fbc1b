package modelcheck

import (
	"github.com/hybridlimit/hybrid/internal/ledger"
	"github.com/hybridlimit/hybrid/slice"
)

// World is all there is at one moment. It is a value: a step makes another one.
type World struct {
	now     int64 // µs of true time, which all nodes' clocks follow
	skew    int64 // µs that the store's clock is ahead of it
	peak    int64 // µs, the latest that the store's clock has shown
	key     Key
	replica Key
	nodes   [maxNodes]Node
	late    [maxLate]Flight // settles that nobody waits for and that may still run
	book    Book
	left    Faults
}

// clock is the store's TIME.
func (w *World) clock() int64 { return w.now + w.skew }

// Key is what the store has under the account's key.
type Key struct {
	account ledger.Account
	until   int64 // ms of the store's clock, the last that it lives to see
}

// gone reports whether the key has expired.
func (k *Key) gone(clock int64) bool { return clock/1000 > k.until }

// at returns the account that a settle would find.
func (k *Key) at(clock int64) ledger.Account {
	if k.gone(clock) {
		return ledger.Account{}
	}
	return k.account
}

// Node is one server: its slice, and the settle that it has under way. Lease is
// the real one; what its cell and its watermark contain is here, since their
// words are atomic and must not be copied.
type Node struct {
	lease  slice.Lease
	tokens int64
	expiry slice.Tick // of the cell
	dead   slice.Tick // the watermark
	latest int64      // µs, the last moment at which the watermark may still be behind the expiry
	rule   uint8
	owes   int64 // charges that the next settle tells
	backs  int64 // refunds that it tells
	flight Flight
	turn   Turn
}

// alive reports whether a take can succeed.
func (n *Node) alive() bool { return n.expiry.After(n.dead) }

// Flight is a settle on its way, and then its reply.
type Flight struct {
	state  state
	ask    uint8
	rule   uint8
	marked bool  // the lease is in doubt: only needs were sent
	sentAt int64 // µs, before the call entered the client
	tag    slice.Tag

	spent, returned, held int64
	owes, backs           int64

	reply Reply
}

// state is how far a settle has come.
type state uint8

const (
	none state = iota // there is no settle
	sent              // it is on its way, and may be executed at any time
	ran               // it was executed, and the reply is on its way
)

// Reply is what of a grant the node needs.
type Reply struct {
	dropped bool
	granted int64
	tag     slice.Tag
	life    int64
	turn    int64 // tokens lent for one; 0: none
	goes    int64 // µs, how long it waits
}
