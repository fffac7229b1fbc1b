package key

import (
	"time"

	"github.com/hybridlimit/hybrid/precheck"
	"github.com/hybridlimit/hybrid/slice"
)

// Step is one call of the state: what it may see, and what it leaves the shell to do.
// The shell makes one under the account's lock, calls one method of [State], and
// acts on the Effects before it releases the lock.
type Step struct {
	Env
	Effects
}

// Ground is what a cold key needs to be decided about by its floor.
type Ground struct {
	Now   int64 // ns
	Plan  *Plan
	Known *Known
	Floor *precheck.Floor
	Fleet Fleet
	Clock int64 // µs, the clock of the key's part of the store less the node's; 0: not known
}

// Env is the world around a key at one moment. The state keeps none of it.
type Env struct {
	Ground
	Cell      *slice.Cell
	Dead      *slice.Watermark // the leases that have ended
	Key       string
	Policy    Policy
	Shared    *Fallback // the bucket of all keys without a place in the table; nil: the key has a place
	Forgotten int64     // ns, when a bucket that was not full was last evicted; 0: never
	Timing    Timing
	Chance    float64 // drawn for this step, in [0, 1): spreads what nodes would do at once
	Down      bool    // the key's part of the store is silent: its breaker is open
	Closed    bool    // the limiter takes no more requests
	Retired   bool    // the account has left the table
}

// Timing is what the node has measured and was configured with.
type Timing struct {
	Latency      int64 // ns, smoothed time of a call
	SyncInterval int64 // ns
	Timeout      int64 // ns that one request waits for the store at most
	Downtime     int64 // ns that a key is left alone while the store is silent
}

// Fleet is what a key needs to know of the limiter's live nodes.
type Fleet interface {
	History() *precheck.History // the fleet's size over time
	Fresh() *precheck.Fresh     // the level of a floor that was never used
	FloorFrom() int64           // ns, since when this node's floors earn
	FloorOpen(now int64) bool   // this node's registration is old enough, and is trusted
	Rank(key string) int        // this node's place among the live ones for a key, from 0
}

// Effects is what a step leaves to do.
type Effects struct {
	Send     Send
	Timer    Timer
	Due      int64 // ns, for Timer
	Idle     bool  // nothing is left to remember: the state may go
	Scarce   int64 // tokens; a request of this cost was refused though the tokens are out in slices. 0: none
	Paid     bool  // of Scarce: the key's requests have paid for one return
	Unpaid   bool  // the key would release tokens, and its own requests have not paid for that
	Lost     bool  // what an account owed was dropped
	Left     Turn  // the turn of a caller that has left, to be given back
	TimedOut bool  // a request has waited in vain: the breaker should know
	Tally    Tally
}

// Send says whether the state has a settle for the batcher.
type Send uint8

const (
	SendNothing Send = iota
	SendLater        // with the next call that has room, or the next tick: no request waits for it
	SendNow
)

// Timer says what becomes of the moment at which the node looks at the key.
type Timer uint8

const (
	KeepTimer   Timer = iota
	SetTimer          // to Due
	TimerBy           // Due, unless an earlier one is set: what is asked for again and again must not be put off
	EnsureTimer       // Due, unless one is set
	StopTimer
)

// Tally is what a step adds to the limiter's counts.
type Tally struct {
	SliceTokens, MemoDenied     int64
	ExactAllowed, ExactDenied   int64
	PolicyAllowed, PolicyDenied int64
	Floor, Reclaimed, Expired   int64
}

// send asks the shell to queue the settle.
func (t *Step) send(s Send) { t.Send = max(t.Send, s) }

// timer plans the next look.
func (t *Step) timer(how Timer, due int64) { t.Timer, t.Due = how, due }

// jittered spreads a span over ±20 %, so that nodes do not act in step.
func (e *Env) jittered(span int64) int64 { return int64(float64(span) * (0.8 + 0.4*e.Chance)) }

// nextTick is a sync interval, jittered upwards.
func (e *Env) nextTick() int64 { return int64(float64(e.Timing.SyncInterval) * (1 + 0.2*e.Chance)) }

// aligned returns the moment after a span, moved back to a tick where that makes
// little difference: what becomes due together shares a call.
func (e *Env) aligned(span int64) int64 {
	tick, due := e.Timing.SyncInterval, e.Now+span
	if span >= 10*tick {
		due -= due % tick
	}
	return due
}

// nodes returns the size of the fleet.
func (e *Ground) nodes() int { return e.Fleet.History().M() }

// window returns the number of the fixed window that the store is in; 0 for a token
// bucket, or if the store's clock is not known.
func (e *Ground) window() int64 { return e.windowAt(e.Now) }

func (e *Ground) windowAt(now int64) int64 {
	period := e.Plan.Rule.Window
	if period == 0 || e.Clock == 0 {
		return 0
	}
	return (now/1000 + e.Clock) / period
}

// windowLeft returns how long the present window lasts.
func (e *Ground) windowLeft() (left time.Duration, known bool) {
	w := e.window()
	if w == 0 {
		return 0, false
	}
	return time.Duration((w+1)*e.Plan.Rule.Window-(e.Now/1000+e.Clock)) * time.Microsecond, true
}

// storeTime returns a moment by the store's clock, in µs; 0 if that is not known.
func (e *Ground) storeTime(now int64) int64 {
	if e.Clock == 0 {
		return 0
	}
	return now/1000 + e.Clock
}
