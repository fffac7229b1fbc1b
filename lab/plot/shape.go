package plot

import (
	"image/color"
	"math"

	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
)

// shape is a marker: a regular outline, filled, or strokes from the middle.
type shape struct {
	corners int     // 0: no marker; 1: a circle
	turn    float64 // of the first corner, in parts of a circle; 0 is to the right
	strokes bool    // to each corner, instead of an outline
	inner   float64 // a star: where the corners between lie, in radii
}

var (
	none     = shape{}
	circle   = shape{corners: 1}
	square   = shape{corners: 4, turn: 1.0 / 8}
	diamond  = shape{corners: 4, turn: 1.0 / 4}
	triangle = shape{corners: 3, turn: 1.0 / 4}
	down     = shape{corners: 3, turn: 3.0 / 4}
	pentagon = shape{corners: 5, turn: 1.0 / 4}
	star     = shape{corners: 5, turn: 1.0 / 4, inner: 0.45}
	plus     = shape{corners: 4, turn: 1.0 / 4, strokes: true}
	cross    = shape{corners: 4, turn: 1.0 / 8, strokes: true}
)

// radius makes markers of few corners as large to the eye as a circle.
func (s shape) radius() float64 {
	switch {
	case s.strokes:
		return 8
	case s.corners == 3 || s.inner > 0:
		return 9.5
	case s.corners == 4:
		return 8.5
	}
	return 7
}

// draw puts the marker at a point, with a rim in the page's colour that sets it
// off from lines and markers below.
func (s shape) draw(c *draw.Canvas, at vg.Point, ink, page color.Color) {
	if s.corners == 0 {
		return
	}
	if s.strokes {
		s.strokeAll(c, at, draw.LineStyle{Color: page, Width: 6})
		s.strokeAll(c, at, draw.LineStyle{Color: ink, Width: 3.5})
		return
	}
	outline := s.outline(at)
	c.SetLineStyle(draw.LineStyle{Color: page, Width: 2.5})
	c.Stroke(outline)
	c.SetColor(ink)
	c.Fill(outline)
}

func (s shape) strokeAll(c *draw.Canvas, at vg.Point, style draw.LineStyle) {
	for i := range s.corners / 2 {
		c.StrokeLines(style, []vg.Point{s.corner(at, float64(i), 1), s.corner(at, float64(i+s.corners/2), 1)})
	}
}

func (s shape) outline(at vg.Point) (p vg.Path) {
	p.Move(s.corner(at, 0, 1))
	if s.corners == 1 {
		p.Arc(at, vg.Length(s.radius()), 0, 2*math.Pi)
	}
	for i := range s.corners {
		if s.inner > 0 {
			p.Line(s.corner(at, float64(i)+0.5, s.inner))
		}
		if i+1 < s.corners {
			p.Line(s.corner(at, float64(i+1), 1))
		}
	}
	p.Close()
	return p
}

func (s shape) corner(at vg.Point, i, part float64) vg.Point {
	sin, cos := math.Sincos(2 * math.Pi * (s.turn + i/float64(s.corners)))
	r := part * s.radius()
	return vg.Point{X: at.X + vg.Length(r*cos), Y: at.Y + vg.Length(r*sin)}
}
