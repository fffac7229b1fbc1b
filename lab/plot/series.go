package plot

import (
	"gonum.org/v1/plot"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
)

// drawing is a series in a theme; it is a plot.Plotter.
type drawing struct {
	Series
	theme Theme
	sizes sizes
}

// Plot is part of plot.Plotter.
func (d drawing) Plot(c draw.Canvas, p *plot.Plot) {
	toX, toY := p.Transforms(&c)
	at := make([]vg.Point, len(d.Points))
	for i, q := range d.Points {
		at[i] = vg.Point{X: toX(q.X), Y: toY(q.Y)}
	}
	switch d.Form {
	case Line:
		c.StrokeLines(d.line(), c.ClipLinesXY(at)...)
		d.markers(c, at)
	case Dots:
		d.markers(c, at)
	case Bars:
		d.bars(c, at)
	}
	d.labels(c, at)
}

func (d drawing) line() draw.LineStyle {
	l := looks[d.Look]
	style := draw.LineStyle{Color: d.theme.color(d.Look), Width: vg.Length(l.width)}
	for _, dash := range l.dashes {
		style.Dashes = append(style.Dashes, vg.Length(dash))
	}
	return style
}

func (d drawing) markers(c draw.Canvas, at []vg.Point) {
	for _, pt := range at {
		if c.Contains(pt) {
			looks[d.Look].shape.draw(&c, pt, d.theme.color(d.Look), d.theme.page())
		}
	}
}

// barWidth is half of a bar's width; labels stand beside it.
const barWidth = 16

// bars are outlines, so that what stands within one can be seen.
func (d drawing) bars(c draw.Canvas, at []vg.Point) {
	style := draw.LineStyle{Color: d.theme.color(d.Look), Width: 2.5}
	for _, pt := range at {
		l, r, top := pt.X-barWidth, pt.X+barWidth, min(pt.Y, c.Max.Y)
		c.StrokeLines(style, []vg.Point{{X: l, Y: c.Min.Y}, {X: l, Y: top}, {X: r, Y: top}, {X: r, Y: c.Min.Y}})
	}
}

// labels stand to the right of their points, and not on the axis.
func (d drawing) labels(c draw.Canvas, at []vg.Point) {
	style := d.sizes.text(d.theme.ink())
	for i, pt := range at {
		if d.Points[i].Label == "" || !c.Contains(pt) {
			continue
		}
		y := max(pt.Y-d.sizes.font*0.36, c.Min.Y+4)
		c.FillText(style, vg.Point{X: pt.X + barWidth + 6, Y: y}, d.Points[i].Label)
	}
}

// grid is drawn first: a line at each mark of both axes.
type grid struct {
	theme Theme
	x, y  []plot.Tick
}

// Plot is part of plot.Plotter.
func (g grid) Plot(c draw.Canvas, p *plot.Plot) {
	toX, toY := p.Transforms(&c)
	style := draw.LineStyle{Color: g.theme.grid(), Width: 1}
	for _, t := range g.x {
		if x := toX(t.Value); c.ContainsX(x) {
			c.StrokeLine2(style, x, c.Min.Y, x, c.Max.Y)
		}
	}
	for _, t := range g.y {
		if y := toY(t.Value); c.ContainsY(y) {
			c.StrokeLine2(style, c.Min.X, y, c.Max.X, y)
		}
	}
}
