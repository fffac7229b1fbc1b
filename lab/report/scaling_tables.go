package report

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/hybridlimit/hybrid/lab/law"
)

// section is what stands between the document's markers.
func (s Scaling) section() string {
	pictures := ""
	for _, f := range s.figures() {
		pictures += f.small()
	}
	return strings.Join([]string{
		s.howMade(), s.operationsTable(), pictures,
		captionPieces, s.piecesTable(), captionWire, s.wireTable(), captionPlan, planTable(),
	}, "\n")
}

const (
	captionPieces = "What the operations are for, of 100:\n"

	captionWire = "What travels, and what a node remembers, where all keys were there, and in parentheses what the law says. Most of what comes from Redis are marks of scarce accounts, which every node reads at every tick.\n"

	captionPlan = "When is one Redis enough? The most requests a second that keep it below half a core, by the law, for a million keys (Zipf 0.99) and load that goes on for ever; in parentheses the operations per request:\n"
)

func (s Scaling) howMade() string {
	var made []string
	for _, p := range s {
		if !slices.Contains(made, p.Made) {
			made = append(made, p.Made)
		}
	}
	slices.Sort(made)
	return fmt.Sprintf("`go run ./lab scaling`, %s; times are virtual, one seed. The base is %s. [scaling.json](scaling.json) has all counts, each with the command that repeats it.\n",
		strings.Join(made, "; "), s.base())
}

func (s Scaling) base() string {
	b, _ := s.Find(Base)
	return fmt.Sprintf("%d nodes, %s requests a second, %s keys (Zipf %g), %s/min each, Balanced",
		b.Nodes, amount(b.Rate), amount(float64(b.Keys)), b.Skew, amount(b.Limit))
}

// Table is the points beside the law.
func (s Scaling) Table() string { return s.operationsTable() + "\n" + s.piecesTable() }

func (s Scaling) operationsTable() string {
	return table(s, []column[Point]{
		{"what differs from the base", Point.title},
		{"operations per request", func(p Point) string { return fmt.Sprintf("%.4f", p.PerRequest()) }},
		{"law", func(p Point) string { return fmt.Sprintf("%.4f", p.Law().Operations()/p.Rate) }},
		{"off by", Point.offBy},
		{"waited", func(p Point) string { return fmt.Sprintf("%.2f %%", 100*ratio(p.Blocked, p.Requests)) }},
		{"law", func(p Point) string { return fmt.Sprintf("%.2f %%", 100*p.Law().Asked/p.Rate) }},
		{"operations per second", func(p Point) string { return amount(round(p.perSecond(p.Operations))) }},
		{"of a core of Redis, by the law", func(p Point) string { return fmt.Sprintf("%.1f %%", 100*p.Law().Busy()) }},
	})
}

// title says what differs from the base, and whether keys are a sample.
func (p Point) title() (text string) {
	switch {
	case p.Axis == ByKeys:
		text = amount(float64(p.Keys)) + " keys"
	case p.Axis == ByNodes:
		text = fmt.Sprintf("%d nodes", p.Nodes)
	case p.Axis == ByRate:
		text = amount(p.Rate) + " requests/s"
	case p.Axis == ByLimit:
		text = amount(p.Limit) + "/min"
	case p.Axis == Far:
		text = fmt.Sprintf("%d nodes, %s requests/s, %s keys, %s/min", p.Nodes, amount(p.Rate), amount(float64(p.Keys)), amount(p.Limit))
	default:
		text = "nothing"
	}
	if p.Sampled {
		text += " (sample)"
	}
	return text
}

// offBy is how far the law is from what was measured.
func (p Point) offBy() string {
	return fmt.Sprintf("%+.0f %%", 100*(p.Law().Operations()/p.Rate/p.PerRequest()-1))
}

func (p Point) perSecond(n int64) float64 { return float64(n) / p.Span }

// wireTable is of the points with all keys.
func (s Scaling) wireTable() string {
	var whole []Point
	for _, p := range s {
		if !p.Sampled {
			whole = append(whole, p)
		}
	}
	both := func(measured, law float64) string {
		return fmt.Sprintf("%s (%s)", amount(round(measured)), amount(round(law)))
	}
	return table(whole, []column[Point]{
		{"what differs from the base", Point.title},
		{"round trips per second", func(p Point) string { return both(p.perSecond(p.RoundTrips+p.Polls), p.Law().Calls) }},
		{"of them with accounts", func(p Point) string { return amount(round(p.perSecond(p.RoundTrips))) }},
		{"accounts in one", func(p Point) string { return fmt.Sprintf("%.1f", ratio(p.Operations, p.RoundTrips)) }},
		{"kB/s to Redis", func(p Point) string { return both(p.perSecond(p.Sent)/1000, p.Law().Sent/1000) }},
		{"kB/s from Redis", func(p Point) string { return both(p.perSecond(p.Received)/1000, p.Law().Received/1000) }},
		{"marks that a poll reads, by the law", func(p Point) string { return fmt.Sprintf("%.0f", p.Law().Listed) }},
		{"keys that a node remembers", func(p Point) string { return both(p.Remembered, p.Law().Remembered) }},
		{"of memory, at 160 B and a name of 16", func(p Point) string { return fmt.Sprintf("%.1f MB", p.Remembered*(160+16)/1e6) }},
	})
}

func (s Scaling) piecesTable() string {
	part := func(of func(Point) int64) func(Point) string {
		return func(p Point) string { return fmt.Sprintf("%.0f", 100*ratio(of(p), p.Operations)) }
	}
	return table(s, []column[Point]{
		{"what differs from the base", Point.title},
		{"a request waits, and is admitted", part(func(p Point) int64 { return p.Asked })},
		{"a request waits, and is refused", part(func(p Point) int64 { return p.Refused })},
		{"refill of a slice", part(func(p Point) int64 { return p.Refilled })},
		{"renewal of a lease alone", part(func(p Point) int64 { return p.Renewed })},
		{"pace of a used-up key", part(func(p Point) int64 { return p.Paced })},
		{"return", part(func(p Point) int64 { return p.Returned })},
		{"report alone", part(func(p Point) int64 { return p.Told })},
	})
}

// The fleets and limits that the law is asked for.
var (
	plannedNodes  = []int{5, 20, 60, 200}
	plannedLimits = []float64{100, 1000, 10_000, 100_000}
)

// planTable is the law alone: where one Redis is enough.
func planTable() string {
	columns := []column[float64]{{"limit, per minute", amount}}
	for _, nodes := range plannedNodes {
		columns = append(columns, column[float64]{fmt.Sprintf("%d nodes", nodes), func(limit float64) string { return mostRate(nodes, limit) }})
	}
	return table(plannedLimits, columns)
}

func mostRate(nodes int, limit float64) string {
	s := law.Service{Nodes: nodes, Keys: 1_000_000, Skew: 0.99, Burst: limit, Fill: time.Minute, Over: 0.1}
	s.Rate = s.One()
	if s.Rate == 0 {
		return "less than 1k"
	}
	text := amount(round(s.Rate))
	if s.Rate >= law.MostRate {
		text = "beyond " + amount(law.MostRate)
	}
	return fmt.Sprintf("%s (%.4f)", text, s.Predict().Operations()/s.Rate)
}

// amount writes 50000 as "50k" and 1e6 as "1M", with four digits at most.
func amount(v float64) string {
	for _, unit := range []struct {
		of   float64
		name string
	}{{1e6, "M"}, {1e3, "k"}} {
		if v >= unit.of {
			return strconv.FormatFloat(v/unit.of, 'g', 4, 64) + unit.name
		}
	}
	return strconv.FormatFloat(v, 'g', 4, 64)
}

// round leaves three digits.
func round(v float64) float64 {
	if v == 0 {
		return 0
	}
	unit := math.Pow(10, math.Floor(math.Log10(v))-2)
	return math.Round(v/unit) * unit
}
