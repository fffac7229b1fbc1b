package ledger_test

import (
	"fmt"
	"math"
	"slices"
	"time"

	"pgregory.net/rapid"

	"github.com/hybridlimit/hybrid/slice"
)

// Histories are drawn as a whole before they run, since a bubble's goroutines
// must not end a test outside it.

// step is one thing that happens to both stores.
type step struct {
	what string
	do   func(p *pair)
}

func (s step) String() string { return s.what }

// kinds are the steps there are; what happens most comes more than once.
var kinds = []func(*rapid.T) step{drawSettles, drawSettles, drawSettles, drawPass, drawPass,
	drawBeat, drawLeave, drawMark, drawMarks, drawDamage, drawLoss}

func drawHistory(t *rapid.T) []step {
	one := rapid.Custom(func(t *rapid.T) step { return rapid.SampledFrom(kinds).Draw(t, "kind")(t) })
	return rapid.SliceOfN(one, 20, 60).Draw(t, "history")
}

// rules are few, so that an account meets limits below and above its own.
var rules = []slice.Rule{
	{Burst: 10, Rate: 10 / 1e6},
	{Burst: 100, Rate: 100 / 60e6},
	{Burst: 7, Rate: 1 / 3e6},
	{Burst: 50, Rate: 50 / 2e6, Window: 2e6},
	{Burst: 50, Rate: 50 / 300e6, Window: 300e6},
}

func drawTokens(t *rapid.T, name string, least int64) int64 {
	return rapid.OneOf(rapid.Int64Range(least, 12), rapid.Int64Range(least, 200)).Draw(t, name)
}

// drawUsage draws a usage whose tag is counted from the present.
func drawUsage(t *rapid.T) (u slice.Usage) {
	u.Tag.Window = rapid.SampledFrom([]int64{0, 0, 0, -1, 1, untagged}).Draw(t, "window")
	if rapid.Bool().Draw(t, "tagged") {
		u.Tag.Epoch = rapid.SampledFrom([]int64{0, 0, -1, -1, -2, 1}).Draw(t, "epoch")
		u.Spent, u.Returned, u.Held = drawTokens(t, "spent", 0), drawTokens(t, "returned", 0), drawTokens(t, "held", 0)
	} else {
		u.Tag.Epoch = untagged
	}
	if rapid.IntRange(0, 3).Draw(t, "charges") == 0 {
		u.Charged = float64(drawTokens(t, "charged", -100)) / 4
		u.Fallback = float64(drawTokens(t, "fallback", 0)) / 8
	}
	if rapid.IntRange(0, 3).Draw(t, "undoes") == 0 {
		u.Return = float64(drawTokens(t, "undone", 1)) / 4
		u.ReturnAt = rapid.Int64Range(-3*slice.Epoch, slice.Epoch).Draw(t, "since")
	}
	for range rapid.IntRange(0, 3).Draw(t, "runs") {
		u.Needs = append(u.Needs, slice.Need{Cost: drawTokens(t, "cost", 1), Count: drawTokens(t, "of", 0)})
	}
	if rapid.Bool().Draw(t, "wants") {
		u.Want, u.Least = drawTokens(t, "want", 1), rapid.Int64Range(1, 3).Draw(t, "least")
		u.Unit, u.Divisor = rapid.Int64Range(1, 3).Draw(t, "unit"), rapid.Int64Range(1, 4).Draw(t, "divisor")
	}
	return u
}

// untagged stands for no tag where tags are counted from the present.
const untagged = math.MinInt64

// spoil makes a settle unsound, most of the time not.
var spoil = []func(*slice.Settle){
	nil, nil, nil, nil, nil, nil, nil, nil, nil, nil,
	func(s *slice.Settle) { s.Rule.Rate = math.NaN() },
	func(s *slice.Settle) { s.Rule.Burst = slice.MaxTokens + 2 },
	func(s *slice.Settle) { s.Usage.Fallback = -1 },
	func(s *slice.Settle) { s.Usage.Charged = math.Inf(1) },
	func(s *slice.Settle) { s.Usage.Return = -1 },
	func(s *slice.Settle) { s.Usage.Return, s.Usage.ReturnAt = 1, -1 },
	func(s *slice.Settle) { s.Usage.Return, s.Usage.ReturnAt = math.NaN(), 1 },
	func(s *slice.Settle) { s.Usage.Held = slice.MaxSlice + 1 },
	func(s *slice.Settle) { s.Usage.Divisor = 0 },
	func(s *slice.Settle) { s.Usage.Needs = []slice.Need{{Cost: 1, Count: 1}, {Cost: 1, Count: -1}} },
	func(s *slice.Settle) {
		s.Usage.Needs = slices.Repeat([]slice.Need{{Cost: 1, Count: 1}}, slice.MaxRuns+1)
	},
}

func drawSettles(t *rapid.T) step {
	var batch []slice.Settle
	for range rapid.IntRange(1, 3).Draw(t, "batch") {
		st := slice.Settle{Account: drawAccount(t), Rule: rapid.SampledFrom(rules).Draw(t, "rule"), Usage: drawUsage(t)}
		if f := rapid.SampledFrom(spoil).Draw(t, "spoilt"); f != nil {
			f(&st)
		}
		batch = append(batch, st)
	}
	return step{fmt.Sprintf("settle %+v", batch), func(p *pair) { p.settle(batch) }}
}

var accounts = []string{"a", "b", "c"}

func drawAccount(t *rapid.T) string { return rapid.SampledFrom(accounts).Draw(t, "account") }

func drawPass(t *rapid.T) step {
	ms := rapid.OneOf(rapid.SampledFrom([]int64{1, 5000, 60_000}), rapid.Int64Range(1, 3000), rapid.Int64Range(1, 130_000), rapid.Int64Range(1, 7_200_000)).Draw(t, "ms")
	d := time.Duration(ms) * time.Millisecond
	return step{fmt.Sprint("pass ", d), func(p *pair) { p.pass(d) }}
}

func drawLimiter(t *rapid.T) string { return rapid.SampledFrom([]string{"x", "y"}).Draw(t, "limiter") }

func drawMember(t *rapid.T) string {
	return rapid.SampledFrom([]string{"n1", "n2", "n3", "n10"}).Draw(t, "member")
}

func drawBeat(t *rapid.T) step {
	member, limiter := drawMember(t), drawLimiter(t)
	ttl := rapid.SampledFrom([]time.Duration{5 * time.Second, 5 * time.Second, time.Minute, 0}).Draw(t, "ttl")
	return step{fmt.Sprint("beat ", member, limiter, ttl), func(p *pair) { p.beat(member, limiter, ttl) }}
}

func drawLeave(t *rapid.T) step {
	member, limiter := drawMember(t), drawLimiter(t)
	return step{fmt.Sprint("leave ", member, limiter), func(p *pair) { p.leave(member, limiter) }}
}

// drawMark draws marks that are some seconds old.
func drawMark(t *rapid.T) step {
	var marks []slice.Mark
	for range rapid.IntRange(0, 3).Draw(t, "marks") {
		marks = append(marks, slice.Mark{Account: drawAccount(t), Cost: rapid.SampledFrom([]int64{1, 5, 10}).Draw(t, "cost"),
			At: -1_000_000 * rapid.SampledFrom([]int64{0, 0, 1, 59, 60, 61}).Draw(t, "age")})
	}
	return step{fmt.Sprint("mark ", marks), func(p *pair) { p.mark(marks) }}
}

func drawMarks(t *rapid.T) step {
	age := 1_000_000 * rapid.OneOf(rapid.Int64Range(0, 70), rapid.Just[int64](1e6)).Draw(t, "since")
	most := rapid.IntRange(-1, 5).Draw(t, "most")
	return step{fmt.Sprint("marks of ", age, " µs, most ", most), func(p *pair) { p.marks(age, most) }}
}

func drawDamage(t *rapid.T) step {
	account := drawAccount(t)
	return step{"damage " + account, func(p *pair) { p.damage(account) }}
}

func drawLoss(t *rapid.T) step {
	if rapid.IntRange(0, 3).Draw(t, "mercy") > 0 {
		return step{"nothing", func(*pair) {}}
	}
	return step{"lose", (*pair).lose}
}
