package plot

import (
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
)

// legend lists the series in columns below the panels, where no data are.
type legend struct {
	entries []drawing
	columns int
	width   vg.Length // of a column
	row     vg.Length // height
}

// thumbnail is the length of a line beside a name.
const thumbnail = 46

func newLegend(panels []Panel, theme Theme, s sizes) legend {
	l := legend{row: s.font * 1.4}
	listed := map[Look]bool{}
	widest := vg.Length(0)
	for _, p := range panels {
		for _, series := range p.Series {
			if series.Name == "" || listed[series.Look] {
				continue
			}
			listed[series.Look] = true
			l.entries = append(l.entries, drawing{series, theme, s})
			widest = max(widest, s.text(theme.ink()).Width(series.Name))
		}
	}
	l.width = thumbnail + 8 + widest + 18
	l.columns = max(1, int((s.width-2*s.margin)/l.width))
	return l
}

func (l legend) rows() int {
	return (len(l.entries) + l.columns - 1) / l.columns
}

func (l legend) height() vg.Length {
	return vg.Length(l.rows())*l.row + 6
}

// draw fills columns from the top, the first one first.
func (l legend) draw(c draw.Canvas) {
	for i, e := range l.entries {
		column, row := i/l.rows(), i%l.rows()
		at := vg.Point{
			X: c.Min.X + vg.Length(column)*l.width,
			Y: c.Max.Y - (vg.Length(row)+0.7)*l.row,
		}
		e.thumbnail(c, at)
		c.FillText(e.sizes.text(e.theme.ink()), vg.Point{X: at.X + thumbnail + 8, Y: at.Y - e.sizes.font*0.36}, e.Name)
	}
}

// thumbnail shows a series' look, from at to the right.
func (d drawing) thumbnail(c draw.Canvas, at vg.Point) {
	middle := []vg.Point{{X: at.X + thumbnail/2, Y: at.Y}}
	switch d.Form {
	case Bars:
		l, r, low, high := at.X+8, at.X+thumbnail-8, at.Y-8, at.Y+8
		c.StrokeLines(draw.LineStyle{Color: d.theme.color(d.Look), Width: 2.5},
			[]vg.Point{{X: l, Y: low}, {X: l, Y: high}, {X: r, Y: high}, {X: r, Y: low}})
		return
	case Line:
		c.StrokeLines(d.line(), []vg.Point{at, {X: at.X + thumbnail, Y: at.Y}})
	}
	d.markers(c, middle)
}
