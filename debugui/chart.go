package debugui

import (
	"time"

	"github.com/hybridlimit/hybrid"
)

// chart is a limiter's decisions per second while it was looked at: what was
// admitted is drawn upwards, what was denied downwards. In shadow mode that is what
// would be denied, and passes.
type chart struct {
	Since  []number `json:"since"` // seconds before the report, of the look that a point begins with; the oldest first
	Ages   []number `json:"ages"`  // of the look that it ends with; where nobody looked there is no point
	Series []series `json:"series"`
	Up     figure   `json:"up"`   // the upper end of the scale, decisions a second
	Down   figure   `json:"down"` // the lower end
	Span   number   `json:"span"` // seconds that the chart is wide
	Line   number   `json:"line"` // one key's limit, tokens a second; null where it is out of scale
	Words  string   `json:"text"`
}

// series is one path's part of a chart.
type series struct {
	Path     string   `json:"path"`
	Admitted []number `json:"admitted,omitempty"`
	Denied   []number `json:"denied,omitempty"`
}

// mostCharts bounds what a report of very many limiters costs.
const mostCharts = 24

// longestStep is between two looks that belong together: pages look once a second.
// The mean of a longer time says nothing of its moments, so it is not drawn.
const longestStep = 5 * time.Second

// busiest returns the limiters that decided most a second lately, each since its history
// begins.
func busiest(h history, most int) map[string]bool {
	return largest(h.last().limiters, most, func(l *limiterInfo) float64 {
		w := h.of(l.name, keptFor)
		if w.empty() {
			return 0
		}
		return w.perSecond(w.of(l.name, decided))
	})
}

func chartOf(l *limiterInfo, h history) *chart {
	c := &chart{Since: []number{}, Ages: []number{}, Span: number(keptFor.Seconds())}
	for i := range paths {
		c.Series = append(c.Series, series{Path: paths[i].name})
	}
	var up, down float64
	gaps := false
	for _, w := range h.steps() {
		if !w.from.knows(l.name) || !w.to.knows(l.name) {
			continue // it was among those that decided little
		}
		if w.seconds() > longestStep.Seconds() {
			gaps = true
			continue
		}
		from, to := w.both(l.name)
		rate := func(count counter) float64 { return w.perSecond(grown(count(&from), count(&to))) }
		c.Since, c.Ages = append(c.Since, h.age(w.from)), append(c.Ages, h.age(w.to))
		up, down = max(up, rate(admitted)), max(down, rate(denied))
		for i := range paths {
			c.Series[i].add(&paths[i], rate)
		}
	}
	if len(c.Ages) == 0 {
		c.Up, c.Down, c.Line, c.Words = unknown, unknown, unknown.Value, "Decisions a second: not known yet"
		return c
	}
	c.scale(l, up, down)
	if gaps {
		c.Words += "; with gaps, in which nobody looked"
	}
	return c
}

// age is how many seconds before the report a look was.
func (h history) age(s *sample) number {
	return number(round(h.last().at.Sub(s.at).Seconds(), 4))
}

// add adds a point, where the path has any.
func (s *series) add(p *path, rate func(counter) float64) {
	if p.admitted != nil {
		s.Admitted = append(s.Admitted, number(round(rate(p.admitted), 3)))
	}
	if p.denied != nil {
		s.Denied = append(s.Denied, number(round(rate(p.denied), 3)))
	}
}

// scale chooses the ends of the scale, and says in words what is drawn. The limit of
// one key is drawn where it says something: beside traffic of its size.
func (c *chart) scale(l *limiterInfo, up, down float64) {
	c.Line = unknown.Value
	if rate := refill(l.limit); up > 0 && rate <= 1.5*up && rate >= up/20 {
		c.Line, up = number(rate), max(up, rate)
	}
	c.Up, c.Down = rateOf(ceiling(up)), rateOf(ceiling(down))
	words := " denied"
	if l.shadow {
		words = " that would be denied"
	}
	c.Words = "Decisions a second in the last two minutes: at most " + c.Up.Text + " admitted, " + c.Down.Text + words
}

// refill is how many tokens a second one key may use in the long run.
func refill(l hybrid.Limit) float64 {
	return ratio(float64(l.Count()), l.Period().Seconds())
}
