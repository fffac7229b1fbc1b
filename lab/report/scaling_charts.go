package report

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"github.com/hybridlimit/hybrid/lab/plot"
)

// figures are a chart for each axis: what was measured, and the law.
func (s Scaling) figures() []figure {
	return []figure{
		s.figure(ByKeys, "keys"),
		s.figure(ByNodes, "nodes"),
		s.figure(ByRate, "requests per second"),
		s.figure(ByLimit, "limit of each key, requests per minute"),
	}
}

// on are the points of an axis, and the base, in its order.
func (s Scaling) on(axis string) (points []Point) {
	for _, p := range s {
		if p.Axis == axis || p.Name == Base {
			points = append(points, p)
		}
	}
	slices.SortFunc(points, func(a, b Point) int { return cmp.Compare(a.Of(axis), b.Of(axis)) })
	return points
}

func (s Scaling) figure(axis, label string) figure {
	points := s.on(axis)
	var ticks []plot.Tick
	var measured []plot.Point
	for _, p := range points {
		ticks = append(ticks, plot.Tick{Value: p.Of(axis), Label: amount(p.Of(axis))})
		measured = append(measured, plot.Point{X: p.Of(axis), Y: p.PerRequest()})
	}
	x := plot.Axis{Label: label, Scale: plot.Log, Min: 1, Max: 10, Ticks: ticks}
	if n := len(ticks); n > 0 {
		x.Min, x.Max = ticks[0].Value/1.3, ticks[n-1].Value*1.3
	}
	return figure{"scaling-" + axis, "", plot.Chart{
		Title: "Operations of Redis per request, over the " + label + ": measured, and by the law",
		X:     x,
		Panels: []plot.Panel{{
			Y: plot.Axis{Label: "operations per request", Scale: plot.Log, Min: fewest, Max: 1.5, Format: atLeast(fewest)},
			Series: []plot.Series{
				{Name: "measured", Look: plot.Blue, Form: plot.Dots, Points: measured},
				{Name: "law", Look: plot.Curve, Points: s.curve(axis, x.Min, x.Max)},
			},
		}},
	}}
}

// curve is the law along an axis, through the base.
func (s Scaling) curve(axis string, from, to float64) (line []plot.Point) {
	base, ok := s.Find(Base)
	if !ok {
		return nil
	}
	const steps = 120
	for i := range steps + 1 {
		x := from * math.Pow(to/from, float64(i)/steps)
		p := base.moved(axis, x)
		line = append(line, plot.Point{X: x, Y: max(fewest, p.Law().Operations()/p.Rate)})
	}
	return line
}

// moved is the point elsewhere on an axis.
func (p Point) moved(axis string, to float64) Point {
	switch axis {
	case ByKeys:
		p.Keys = int(math.Round(to))
	case ByNodes:
		p.Nodes = int(math.Round(to))
	case ByRate:
		p.Rate = to
	default:
		p.Limit = math.Round(to)
	}
	return p
}

// small shows two pictures beside each other where there is room.
func (f figure) small() string {
	return fmt.Sprintf(`<picture>
  <source media="(prefers-color-scheme: dark)" srcset="%s">
  <img src="%s" alt="%s" width="49%%">
</picture>
`, f.path(plot.Dark), f.path(plot.Light), f.chart.Title)
}

// Files are all generated files, by path from the repository's root, where doc is
// the present text of the document.
func (s Scaling) Files(doc string) (map[string][]byte, error) {
	doc, err := replaceBetween(doc, "<!-- lab:scaling -->\n", "<!-- end: lab:scaling -->\n", s.section())
	if err != nil {
		return nil, err
	}
	files := map[string][]byte{ScalingDocument: []byte(doc)}
	if files[ScalingNumbers], err = s.JSON(); err != nil {
		return nil, err
	}
	return files, draw(files, s.figures())
}
