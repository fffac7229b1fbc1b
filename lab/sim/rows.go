package sim

import (
	"time"

	"github.com/hybridlimit/hybrid"
)

// Row is one line of the table of targets.
type Row struct {
	Name       string
	Experiment Experiment
	Targets
}

// Targets are what a row has to reach. Operations and Blocked are measured in
// Balanced, Admitted in Strict, where no floor can hide what was left unspent.
type Targets struct {
	Operations float64 // per request, at most
	Blocked    float64 // part of the requests, at most; 0: no target
	Admitted   float64 // part of what a perfect central limiter admits, at least
}

// Rows is the table of targets.
func Rows() []Row {
	second, minute := hybrid.PerSecond(1000), hybrid.PerMinute(1000)
	rows := standardRows("1000/min", minute)
	rows = append(rows,
		Row{"1000/min, flash crowd of 50,000/s for 10 s", Experiment{Limit: minute, Rate: 50_000, Quiet: true, Span: 10 * time.Second},
			Targets{0.002, 0.003, 0.99}},
		Row{"10,000/min, uniform, 50 %", Experiment{Limit: hybrid.PerMinute(10_000), Load: 0.5}, Targets{0.02, 0.001, 1}},
		Row{"10,000/min, uniform, 95 %", Experiment{Limit: hybrid.PerMinute(10_000), Load: 0.95}, Targets{0.01, 0.001, 1}},
		Row{"10,000/min, uniform, 140 %", Experiment{Limit: hybrid.PerMinute(10_000), Load: 1.4}, Targets{0.05, 0.01, 0.99}},
		Row{"52,000/s, uniform, 96 %", Experiment{Limit: hybrid.PerSecond(52_000), Rate: 50_000}, Targets{0.002, 0.0005, 1}},
		Row{"40,000/s, uniform, 125 %", Experiment{Limit: hybrid.PerSecond(40_000), Rate: 50_000}, Targets{0.02, 0.01, 0.99}},
	)
	rows = append(rows, smallRows()...)
	rows = append(rows, Row{"5/min, uniform, 10×", Experiment{Limit: hybrid.PerMinute(5), Load: 10}, Targets{1, 0, 0.99}})
	return append(rows, standardRows("1000/s", second)...)
}

// standardRows are the loads and placements that every limit of a thousand has to bear.
func standardRows(name string, l hybrid.Limit) []Row {
	calm := Scenes{
		{For: 2 * l.Period(), Load: 0.5, Place: Uniform, Aside: true},
		{For: l.Period(), Load: 3, Place: OneNode},
	}
	return []Row{
		{name + ", uniform, 1 %", Experiment{Limit: l, Load: 0.01}, Targets{0.001, 0.001, 1}},
		{name + ", uniform, 5 %", Experiment{Limit: l, Load: 0.05}, Targets{0.001, 0.001, 1}},
		{name + ", uniform, 50 %", Experiment{Limit: l, Load: 0.5}, Targets{0.10, 0.005, 1}},
		{name + ", uniform, 95 %", Experiment{Limit: l, Load: 0.95}, Targets{0.08, 0.005, 1}},
		{name + ", uniform, 140 %", Experiment{Limit: l, Load: 1.4}, Targets{0.15, 0.02, 0.993}},
		{name + ", uniform, 10×", Experiment{Limit: l, Load: 10}, Targets{0.02, 0.005, 0.995}},
		{name + ", one node, 140 %", Experiment{Limit: l, Load: 1.4, Place: OneNode}, Targets{0.05, 0.02, 0.993}},
		{name + ", hopping node, 140 %", Experiment{Limit: l, Load: 1.4, Place: Hopping}, Targets{0.20, 0.03, 0.99}},
		{name + ", node with the least, 140 %", Experiment{Limit: l, Load: 1.4, Place: Least}, Targets{0.40, 0.05, 0.99}},
		{name + ", calm at 50 %, then one node sends 3×", Experiment{Limit: l, Scenes: calm}, Targets{0.10, 0.03, 0.96}},
	}
}

// smallRows are limits of which a node's share is a few tokens: there it is enough
// that an operation serves a request.
func smallRows() (rows []Row) {
	l, t := hybrid.PerMinute(100), Targets{1, 0, 0.98}
	for _, r := range []struct {
		name  string
		load  float64
		place Place
	}{
		{"uniform, 50 %", 0.5, Uniform},
		{"uniform, 95 %", 0.95, Uniform},
		{"uniform, 140 %", 1.4, Uniform},
		{"uniform, 10×", 10, Uniform},
		{"one node, 140 %", 1.4, OneNode},
		{"hopping node, 140 %", 1.4, Hopping},
		{"hopping node, 10×", 10, Hopping},
		{"node with the least, 140 %", 1.4, Least},
	} {
		rows = append(rows, Row{"100/min, " + r.name, Experiment{Limit: l, Load: r.load, Place: r.place}, t})
	}
	return rows
}

// ServiceRows are whole services, with keys of very different popularity. The
// largest is a sample of its keys.
func ServiceRows() []Row {
	service := Experiment{Limit: hybrid.PerMinute(1000), Keys: 1_000_000, Skew: 0.99, Rate: 50_000, Span: time.Minute}
	more, large := service, service
	more.Limit = hybrid.PerMinute(10_000)
	large.Limit = hybrid.PerMinute(10_000)
	large.Nodes, large.Keys, large.Rate, large.Sample, large.Span = 200, 10_000_000, 1_000_000, 1500, 15*time.Second
	return []Row{
		{"50,000 req/s, 20 nodes, 1M keys, 1000/min each", service, Targets{0.03, 0.01, 0.995}},
		{"50,000 req/s, 20 nodes, 1M keys, 10,000/min each", more, Targets{0.004, 0.001, 0.995}},
		{"1M req/s, 200 nodes, 10M keys, 10,000/min each (sampled)", large, Targets{0.02, 0.005, 0.99}},
	}
}

// Measured is what a row came to.
type Measured struct {
	Row
	Balanced, Strict *Figures
}

// Misses says which targets were missed, by what is printed of them.
func (m *Measured) Misses() (operations, blocked, admitted bool) {
	return m.Balanced.Operations() > m.Targets.Operations,
		m.Targets.Blocked > 0 && m.Balanced.Waited() > m.Targets.Blocked,
		m.Strict.Ratio() < m.Targets.Admitted-0.0005
}
