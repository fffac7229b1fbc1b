package hybrid

import (
	"context"
	"math"
	"time"

	"github.com/hybridlimit/hybrid/exact"
	"github.com/hybridlimit/hybrid/internal/cause"
	"github.com/hybridlimit/hybrid/slice"
	"github.com/hybridlimit/hybrid/syncer"
)

// KeyState is what one node and Redis know of a key at a moment. Other nodes know
// other things. Of a key that the node does not remember it says what a first request
// would find.
type KeyState struct {
	Limit Limit // in force for the key
	Known bool  // this node remembers the key

	Slice     int64         // tokens that can be admitted from memory now
	SliceEnds time.Duration // until the slice's lease ends here; 0 without one
	Unsettled bool          // a settle's outcome is unknown: the slice is used up and not renewed

	Floor      float64       // tokens in the floor now
	FloorOff   time.Duration // until the floor is on again, which is off while little of the account is free; 0 if it is on
	FloorWaits bool          // this node's floors are not open (yet): it is not registered, or not long enough

	DeniedCost int64         // costs from this on are denied from memory; 0: none
	DeniedFor  time.Duration // until the node forgets that
	Paced      bool          // used up: asked for once a period
	NextAsk    time.Duration // until the node looks at the key of its own accord, and asks Redis if there is anything to ask; 0: not planned

	Demand     float64 // tokens/s attempted on this node lately
	DenialRate float64 // requests/s denied on this node lately
	Owed       float64 // tokens to be charged with the next settle (negative: refunds)
	Fallback   float64 // tokens admitted by the failure policy, not told to Redis yet

	InFlight  bool          // a settle is queued or under way
	StoreDown bool          // nobody waits for the key's part of Redis
	ToldFree  int64         // tokens free as Redis last told; all, if it never did or they would be free by now
	ToldFull  time.Duration // until the account is full again, as last told

	Store      *AccountState // as Redis has it now; nil: Redis was not there, or the limit is 0 or none and there is nothing to ask
	StoreCause string        // why Store is nil, in the words of the log

	// Why says in one sentence whether the next request of one token would be allowed on
	// this node, and why. It is true of the moment of the state; what Redis would decide,
	// other nodes may change until it is asked.
	Why string
}

// AccountState is a key's account in Redis. Its size is the limit, less the part that
// the nodes' floors own (Within).
type AccountState struct {
	Used       float64       // tokens that are taken and have not drained, with what is lent
	Lent       int64         // tokens out in slices of all nodes
	Free       float64       // tokens that can be admitted or lent
	ResetAfter time.Duration // until all is free, if nobody uses the key
}

// Inspect reports what this node and Redis know of one key, for whoever asks why it
// is allowed or denied. It charges and changes nothing; like Peek it is one operation,
// and waits for StoreTimeout at most. Without an answer KeyState.Store is nil.
//
// It fails with ErrInvalidKey, ErrClosed or ctx.Err().
func (l *Limiter) Inspect(ctx context.Context, key string) (KeyState, error) {
	v, err := l.look(ctx, key)
	if err != nil {
		return KeyState{}, err
	}
	return v.state, nil
}

// view is one key as this node and Redis have it at a moment.
type view struct {
	node   syncer.View
	store  slice.Grant // zero if state.Store is nil
	state  KeyState    // of both
	policy FailurePolicy
	shadow bool
	soon   float64 // tokens that may be free by the time that Redis judges a request
	mixed  bool    // a settle ran beside the question to Redis: the answers may be of before and after it
}

// look asks Redis for a key, and then looks at what this node knows of it: nothing
// happens between that and the answer.
func (l *Limiter) look(ctx context.Context, key string) (v view, err error) {
	if err := l.usable(key, 0); err != nil {
		return v, err
	}
	if ctx.Err() != nil {
		return v, ctx.Err()
	}
	cell, plan := exact.CellKey(key), l.planOf(key)
	unasked := "not asked: the limit is 0"
	if plan.Always {
		unasked = "not asked: the key is unlimited"
	}
	replies := l.core.Replies(cell)
	if plan.Stored() {
		var err error
		if v.store, err = l.core.Read(ctx, cell, plan.Rule); ctx.Err() != nil {
			return v, ctx.Err()
		}
		unasked = ""
		if err != nil {
			unasked = cause.Of(err)
		}
	}
	var known bool
	v.node, known = l.core.Inspect(cell, key)
	v.mixed = v.node.Waits || replies != l.core.Replies(cell) // counted last: what came before Inspect is in its view
	v.policy, v.shadow = l.opts.OnFailure, l.opts.Shadow
	s := &v.state
	*s = stateOf(&v.node)
	s.Limit, s.Known, s.StoreCause = l.limitOf(&v.node, key), known, unasked
	if unasked == "" {
		s.Store = accountOf(v.node.Plan.Rule, &v.store)
		v.soon = soon(v.node.Plan.Rule, s.Store, l.node.opts.StoreTimeout)
	}
	s.Why = v.why()
	return v, nil
}

// accountOf describes an account as it is by a rule.
func accountOf(r slice.Rule, g *slice.Grant) *AccountState {
	return &AccountState{
		Used:       g.Used,
		Lent:       g.Lent,
		Free:       max(float64(r.Burst)-g.Used, 0),
		ResetAfter: slice.ResetAfter(r, *g),
	}
}

// stateOf says what a node knows in the types of this package.
func stateOf(v *syncer.View) KeyState {
	return KeyState{
		Slice: v.Slice, SliceEnds: v.SliceEnds, Unsettled: v.InDoubt,
		Floor: v.Floor, FloorOff: v.FloorOff, FloorWaits: v.FloorWaits,
		DeniedCost: v.DeniedCost, DeniedFor: v.DeniedFor,
		Paced: v.Exhausted, NextAsk: v.NextLook,
		Demand: v.Demand, DenialRate: v.Denials, Owed: v.Owed, Fallback: v.Admitted,
		InFlight: v.InFlight, StoreDown: v.Down,
		ToldFree: v.Free, ToldFull: v.FullIn,
	}
}

// limitOf returns the limit that a plan was made of.
func (l *Limiter) limitOf(st *syncer.View, key string) Limit {
	if !st.Own || l.tiers == nil {
		return *l.limit.Load()
	}
	var limit Limit
	found := false
	l.tiers.plans.Range(func(k, plan any) bool {
		if found = plan == st.Plan; found {
			limit = k.(Limit)
		}
		return !found
	})
	if found {
		return limit
	}
	return l.Limit(key) // one of too many tiers to keep
}

// soon returns the tokens that may become free in an account while a request waits.
func soon(r slice.Rule, store *AccountState, wait time.Duration) float64 {
	switch {
	case r.Window == 0:
		return r.Rate * float64(wait.Microseconds())
	case store.ResetAfter <= wait:
		return math.Inf(1)
	}
	return 0
}
