package report

import (
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/hybridlimit/hybrid/lab/plot"
)

// The sets of rows.
const (
	Scenarios = "scenarios"   // the library, in the rows that have targets
	Dial      = "dial"        // X is the over-admission that the setting permits, a part of 1
	DialOver  = "dial, crowd" // the same settings under the load that is worst for their accuracy
	Schemes   = "schemes"     // the other schemes, under the load of Dial
	Load      = "load"        // X is the offered load as a multiple of the limit
	SizeHalf  = "size, 50 %"  // X is the limit in tokens per minute
	SizeOver  = "size, 140 %"
	Interval  = "interval" // X is the sync interval in ms
)

// hybridPrefix begins the names of all settings of the library.
const hybridPrefix = "hybrid, "

// look is the same for a subject in all charts.
func look(subject string) plot.Look {
	for _, l := range []struct {
		prefix string
		look   plot.Look
	}{
		{"hybrid, Balanced", plot.Blue},
		{"hybrid, Strict", plot.Green},
		{"exact", plot.Black},
		{"static", plot.Orange},
		{"fixed", plot.Red},
		{"post-paid, 10 ms", plot.Purple1},
		{"post-paid, 50 ms", plot.Purple2},
		{"post-paid, 100 ms", plot.Purple3},
		{"post-paid, load 2×", plot.Purple3},
		{"post-paid", plot.Purple4},
	} {
		if strings.HasPrefix(subject, l.prefix) {
			return l.look
		}
	}
	return plot.Rule
}

// figure is a chart with the name of its files.
type figure struct {
	name    string
	caption string // what was measured
	chart   plot.Chart
}

func (d Data) figures() []figure {
	return []figure{d.load(), d.costs(), d.excess(), d.dial()}
}

// load is the trade in one picture: what is admitted, who waits, and what it
// costs, over the load.
func (d Data) load() figure {
	percents := func(part func(Figures) float64) func(Row) float64 {
		return func(r Row) float64 { return 100 * part(r.Figures) }
	}
	return figure{"load", captionLoad, plot.Chart{
		Title: "Over the offered load, for the library and other schemes: what is admitted of what a perfect central limiter admits, the requests that wait for the store, and the operations of the store per request",
		X: plot.Axis{Label: "offered load, as a multiple of the limit", Scale: plot.Log, Min: 0.01, Max: 50,
			Ticks: []plot.Tick{{Value: 0.01, Label: "0.01"}, {Value: 0.1, Label: "0.1"}, {Value: 1, Label: "1"}, {Value: 10, Label: "10"}, {Value: 50, Label: "50"}}},
		Panels: []plot.Panel{
			{Y: plot.Axis{Label: "admitted, of the ideal", Min: 40, Max: 120, Format: plot.Percent}, Series: d.lines(Load, percents(Figures.OfIdeal))},
			{Y: plot.Axis{Label: "requests that wait for the store", Max: 105, Format: plot.Percent}, Series: d.lines(Load, percents(Figures.Waited))},
			d.operations(Load, "operations of the store per request"),
		},
	}}
}

// operations is a panel of what a request costs the store.
func (d Data) operations(set, label string) plot.Panel {
	return plot.Panel{
		Y:      plot.Axis{Label: label, Scale: plot.Log, Min: fewest, Max: 1.5, Format: atLeast(fewest)},
		Series: d.lines(set, func(r Row) float64 { return max(fewest, r.OperationsPerRequest()) }),
	}
}

// fewest operations per request are told apart.
const fewest = 1e-4

// costs is what a request costs the store, over the size of the limit.
func (d Data) costs() figure {
	return figure{"operations", captionCosts, plot.Chart{
		Title: "Operations of the store per request, over the size of the limit, at 50 % and at 140 % of it",
		X:     plot.Axis{Label: "limit, requests per minute", Scale: plot.Log, Min: 5, Max: 1e5, Ticks: d.sizes()},
		Panels: []plot.Panel{
			d.operations(SizeHalf, "operations per request, load 50 %"),
			d.operations(SizeOver, "operations per request, load 140 %"),
		},
	}}
}

// sizes are the limits that were measured.
func (d Data) sizes() (ticks []plot.Tick) {
	for _, r := range d.Set(SizeHalf) {
		t := plot.Tick{Value: r.X, Label: thousands(r.X)}
		if !slices.Contains(ticks, t) {
			ticks = append(ticks, t)
		}
	}
	return ticks
}

// thousands writes 10000 as "10k".
func thousands(v float64) string {
	if v >= 1000 {
		return strconv.FormatFloat(v/1000, 'f', -1, 64) + "k"
	}
	return strconv.FormatFloat(v, 'f', -1, 64)
}

// excess is the worst over-admission over the interval of synchronisation.
func (d Data) excess() figure {
	percent := func(r Row) float64 { return 100 * r.Over() }
	bound := plot.Series{Name: "bound of Balanced", Look: plot.Rule, Points: []plot.Point{{X: 10, Y: 10}, {X: 1000, Y: 10}}}
	return figure{"over-admission", captionExcess, plot.Chart{
		Title: "Worst over-admission over the interval between synchronisations, for the library and for post-paid counters",
		X:     plot.Axis{Label: "sync interval, ms", Scale: plot.Log, Min: 10, Max: 1000},
		Panels: []plot.Panel{{
			Y:      plot.Axis{Label: "admitted beyond the limit, at worst", Scale: plot.Asinh, Max: 1000, Format: plot.Percent},
			Series: append(d.lines(Interval, percent), bound),
		}},
	}}
}

// dial is where a user picks a setting: what it costs in time above, what it
// costs in accuracy below.
func (d Data) dial() figure {
	var ticks []plot.Tick
	var wait, permitted, measured []plot.Point
	for i, r := range d.settings() {
		x := float64(i + 1)
		ticks = append(ticks, plot.Tick{Value: x, Label: setting(r)})
		wait = append(wait, plot.Point{X: x, Y: max(100*r.Waited(), leastShown), Label: milliseconds(r.MeanDelay())})
		permitted = append(permitted, plot.Point{X: x, Y: 100 * r.X})
		measured = append(measured, plot.Point{X: x, Y: 100 * r.Over(), Label: plot.Percent(math.Round(1000*r.Over()) / 10)})
	}
	return figure{"dial", captionDial, plot.Chart{
		Title: "For each setting of the dial: requests that wait for Redis with the mean added latency, and over-admission, permitted and measured",
		X:     plot.Axis{Label: "accuracy", Min: 0.6, Max: float64(len(ticks)) + 0.7, Ticks: ticks},
		Panels: []plot.Panel{
			{Y: plot.Axis{Label: "requests that wait for Redis; beside it: added latency, mean", Scale: plot.Log, Min: leastShown, Max: 100,
				Format: func(v float64) string { return atLeast(leastShown)(v) + " %" }},
				Series: []plot.Series{{Name: "waiting", Look: plot.Blue, Form: plot.Dots, Points: wait}}},
			{Y: plot.Axis{Label: "admitted beyond the limit, at worst", Max: 35, Format: plot.Percent},
				Series: []plot.Series{
					{Name: "measured", Look: plot.Red, Form: plot.Dots, Points: measured},
					{Name: "permitted", Look: plot.Black, Form: plot.Bars, Points: permitted},
				}},
		},
	}}
}

// settings are the rows of Dial, with the worst excess that is known of each.
func (d Data) settings() []Row {
	rows := d.Set(Dial)
	for i := range rows {
		for _, o := range d.Set(DialOver) {
			if r := &rows[i]; o.Subject == r.Subject && o.Over() > r.Over() {
				r.Excess, r.Within = o.Excess, o.Within
			}
		}
	}
	return rows
}

// leastShown is the bottom of a logarithmic axis of percents.
const leastShown = 0.01

// lines is a series for each subject of a set, over X.
func (d Data) lines(set string, y func(Row) float64) []plot.Series {
	var series []plot.Series
	at := map[string]int{}
	for _, r := range d.Set(set) {
		i, ok := at[r.Subject]
		if !ok {
			i = len(series)
			at[r.Subject] = i
			series = append(series, plot.Series{Name: r.Subject, Look: look(r.Subject)})
		}
		series[i].Points = append(series[i].Points, plot.Point{X: r.X, Y: y(r)})
	}
	return series
}

// atLeast writes numbers as they are, and says of the least that it stands for
// what is below it too.
func atLeast(least float64) func(float64) string {
	return func(v float64) string {
		s := strconv.FormatFloat(v, 'f', -1, 64)
		if v <= least*1.001 {
			return "≤ " + s
		}
		return s
	}
}

// milliseconds writes a delay with two digits, in a unit that suits it.
func milliseconds(ms float64) string {
	unit, v := " ms", ms
	if ms < 0.1 {
		unit, v = " µs", 1000*ms
	}
	if v >= 10 {
		return strconv.FormatFloat(v, 'f', 0, 64) + unit
	}
	return strconv.FormatFloat(v, 'g', 2, 64) + unit
}
