package key

import (
	"math"
	"time"

	"github.com/hybridlimit/hybrid/precheck"
	"github.com/hybridlimit/hybrid/slice"
)

// Plan is a limit as a node works with it. It is immutable, so that a limit
// can be replaced under load by storing one pointer.
type Plan struct {
	Burst int64      // what callers are told: the burst, or the quota of a window
	Rule  slice.Rule // of the account: the limit less the part that floors own

	Floor      precheck.Size // the floors of the whole fleet together; zero: no floor
	FloorShare float64       // part of what a floor admits that is charged to the account: over/(over+under)

	Sliced  bool    // false: every admission asks the store
	Never   bool    // a count of 0: everything is denied
	Always  bool    // unlimited: everything is admitted
	brief   bool    // the account fills faster than a node can poll it
	perNano float64 // r, tokens per nanosecond
	nanos   float64 // nanoseconds per token, 1/r
	slack   float64 // tokens that times rounded up to whole microseconds come to: without it 6 of 10 used would leave 3.9999
	horizon int64   // ns of demand that a slice is made for
	fill    int64   // ns that an empty account takes to fill, B/r
}

// Dial is an accuracy as arithmetic: how large floors are, and who pays them.
type Dial struct {
	Over   float64 // floors on top of the limit, as a part of it
	Under  float64 // floors carved out of the limit
	Slices bool
}

const (
	// The horizon is how far demand is looked back and ahead: a quarter of the time
	// that an account takes to fill, and no more than 15 s, because what a node
	// holds others cannot use.
	horizonShare = 0.25
	horizonMost  = 15 * time.Second
	// A bucket that fills faster is not sliced either: between two polls of 20 ms it
	// would be full, and lose what it cannot hold. Measured at 90 % of the limit, one
	// node: 1000/s with a burst of 10 admitted 29 %, of 40 (40 ms) 98 %, of 100 all.
	shortestFill = 4 * int64(shortestPoll)
	// A window shorter than this is not sliced: the guard would eat its slices.
	shortestWindow = int64(time.Second / time.Microsecond)
)

// NewPlan makes the plan of an account rule under a dial.
func NewPlan(rule slice.Rule, dial Dial) *Plan {
	p := &Plan{Burst: rule.Burst, Rule: rule, Never: rule.Burst == 0 || rule.Rate == 0}
	if p.Never {
		return p
	}
	p.fill = clampNanos(float64(rule.Burst) / rule.Rate * 1e3)
	p.horizon = min(int64(horizonShare*float64(p.fill)), int64(horizonMost))
	p.brief = dial.Slices && rule.Window == 0 && p.fill < shortestFill
	p.Sliced = dial.Slices && !p.brief && (rule.Window == 0 || rule.Window >= shortestWindow)
	p.carveFloor(dial)
	p.perNano, p.nanos = p.Rule.Rate/1e3, 1e3/p.Rule.Rate
	p.slack = 1001 * p.perNano
	return p
}

// UnlimitedPlan is the plan of a limit that denies nothing.
func UnlimitedPlan(burst int64) *Plan { return &Plan{Burst: burst, Always: true} }

// Stored reports whether the store has an account by this limit. By a limit that denies
// everything or nothing it has none: it could not settle by such numbers.
func (p *Plan) Stored() bool { return !p.Never && !p.Always }

// carveFloor sizes the floors. In a window the level at its start and the
// refill during it count both, so each is half. Where all floors together hold
// less than a token there are none, and the account keeps its limit; it keeps at
// least one token in any case, for the store settles no account of none.
func (p *Plan) carveFloor(dial Dial) {
	burst := float64(p.Rule.Burst)
	under := min(dial.Under, 1-1/burst)
	phi := dial.Over + under
	part := phi
	if p.Rule.Window > 0 {
		part /= 2
	}
	if !p.Sliced || part*burst*(1+1e-12) < 1 {
		return
	}
	p.Floor = precheck.Size{Cap: part * burst, Rate: part * p.Rule.Rate / 1e3}
	p.FloorShare = dial.Over / phi
	p.Rule.Burst = max(p.Rule.Burst-int64(math.Ceil(under*burst-1e-9)), 1) // 7 % of 100 are 7, also in floats
	p.Rule.Rate *= 1 - under
}

// Fits reports whether the account can ever admit a cost.
func (p *Plan) Fits(n int64) bool { return p.Always || !p.Never && n <= p.Rule.Burst }

// ratePerNano returns r in tokens per nanosecond.
func (p *Plan) ratePerNano() float64 { return p.perNano }

// clampNanos turns a float of nanoseconds into an int64 that arithmetic on
// moments cannot overflow (a quarter of the range is 73 years).
func clampNanos(ns float64) int64 { return int64(min(ns, math.MaxInt64/4)) }
