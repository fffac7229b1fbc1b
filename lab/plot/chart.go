// Package plot draws the charts of the documentation as SVG: large enough to be
// read on a phone, in a light and a dark theme, and so that lines can be told
// apart without colour.
//
// A chart is plain data. The same data give the same bytes, so that a test can
// tell whether a committed picture is what the data say.
package plot

// Chart is one picture: panels above each other that share the x axis and the legend.
type Chart struct {
	Title  string // for those who cannot see it; it is not drawn
	X      Axis
	Panels []Panel
}

// Panel is one pair of axes with its series, of which the first lies on top.
type Panel struct {
	Y      Axis
	Series []Series
}

// Axis is one direction.
type Axis struct {
	Label    string // with the unit
	Scale    Scale
	Min, Max float64 // of what is shown; what lies beyond is cut off
	Ticks    []Tick  // empty: as the scale has them, written as Format says
	Format   func(v float64) string
}

// Tick is a mark on an axis; without a label it is a minor one.
type Tick struct {
	Value float64
	Label string
}

// Series is what is measured of one thing. A look that occurs in several panels
// is listed once in the legend, with the first name that it has.
type Series struct {
	Name   string // empty: not in the legend
	Look   Look
	Form   Form
	Points []Point
}

// Point is one measurement, with a text beside it if there is something to say.
type Point struct {
	X, Y  float64
	Label string
}

// Form is how the points of a series are shown.
type Form int

// The forms: a line with markers, markers alone, and bars from the bottom.
const (
	Line Form = iota
	Dots
	Bars
)
