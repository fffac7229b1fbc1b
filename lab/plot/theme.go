package plot

import "image/color"

// Theme is where a picture is shown: on light or on dark pages.
type Theme int

// The themes.
const (
	Light Theme = iota
	Dark
)

// String is the theme's part of a file name.
func (t Theme) String() string {
	if t == Dark {
		return "dark"
	}
	return "light"
}

// Look is a colour, a dash pattern and a marker: each of them is told from its
// neighbours without the other two.
type Look int

// The looks. Those of one hue are ordered by lightness.
const (
	Rule Look = iota // a line that is no measurement
	Blue
	Green
	Black
	Orange
	Red
	Purple1
	Purple2
	Purple3
	Purple4
	Curve // a line that was reckoned
)

type look struct {
	light, dark uint32 // RGB; each at least 3:1 against its page
	width       float64
	dashes      []float64
	shape       shape
}

// The hues are Okabe and Ito's, which people with any colour vision tell apart,
// made darker or lighter where the page needs it.
var looks = [...]look{
	Rule:    {0x6e7781, 0x8b949e, 1.5, []float64{2, 5}, none},
	Blue:    {0x0072b2, 0x56b4e9, 4.5, nil, circle},
	Green:   {0x00805c, 0x2bc79a, 4.5, []float64{14, 5}, square},
	Black:   {0x24292f, 0xe6edf3, 3, []float64{3, 5}, plus},
	Orange:  {0xb77800, 0xf0b429, 3, []float64{12, 4, 2, 4}, triangle},
	Red:     {0xd55e00, 0xff8c52, 3, []float64{20, 7}, diamond},
	Purple1: {0xb57bb5, 0x8f68a0, 3, []float64{2, 4}, cross},
	Purple2: {0x93509a, 0xad82bd, 3, []float64{6, 4}, pentagon},
	Purple3: {0x6f2c7f, 0xcaa3d6, 3, []float64{10, 4}, down},
	Purple4: {0x4a0f5c, 0xe8cdf0, 3, []float64{14, 4, 2, 4, 2, 4}, star},
	Curve:   {0x24292f, 0xe6edf3, 2, nil, none},
}

func (t Theme) color(l Look) color.Color {
	if t == Dark {
		return rgb(looks[l].dark)
	}
	return rgb(looks[l].light)
}

// page, ink and grid are those of GitHub's pages.
func (t Theme) page() color.Color { return t.pick(0xffffff, 0x0d1117) }
func (t Theme) ink() color.Color  { return t.pick(0x1f2328, 0xe6edf3) }
func (t Theme) grid() color.Color { return t.pick(0xd8dee4, 0x30363d) }

func (t Theme) pick(light, dark uint32) color.Color {
	if t == Dark {
		return rgb(dark)
	}
	return rgb(light)
}

func rgb(v uint32) color.Color {
	return color.RGBA{R: uint8(v >> 16), G: uint8(v >> 8), B: uint8(v), A: 0xff}
}
