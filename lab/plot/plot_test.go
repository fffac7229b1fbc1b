package plot

import (
	"bytes"
	"encoding/xml"
	"errors"
	"fmt"
	"image/color"
	"io"
	"math"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// sample is a chart with everything in it.
func sample() Chart {
	line := func(name string, look Look, y float64) Series {
		return Series{Name: name, Look: look, Points: []Point{{X: 0.01, Y: y}, {X: 1, Y: y + 5}, {X: 50, Y: 2 * y}}}
	}
	return Chart{
		Title: "A & B",
		X:     Axis{Label: "offered load, multiples of the limit", Scale: Log, Min: 0.01, Max: 50},
		Panels: []Panel{
			{Y: Axis{Label: "admitted", Max: 115, Format: Percent}, Series: []Series{line("one", Blue, 10), line("two", Red, 40), line("", Rule, 60)}},
			{Y: Axis{Label: "beyond", Scale: Asinh, Max: 1000, Format: Percent}, Series: []Series{
				{Name: "bound", Look: Black, Form: Bars, Points: []Point{{X: 1, Y: 30, Label: "30 %"}}},
				{Name: "measured", Look: Purple4, Form: Dots, Points: []Point{{X: 1, Y: 0, Label: "<0"}}},
			}},
		},
	}
}

func render(t *testing.T, c Chart, theme Theme) string {
	t.Helper()
	var b bytes.Buffer
	if err := c.WriteSVG(&b, theme); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

func TestTheSameDataAreTheSameBytes(t *testing.T) {
	if render(t, sample(), Light) != render(t, sample(), Light) {
		t.Error("two renderings differ")
	}
}

// Themes differ in colours and in nothing else.
func TestThemesHaveOneGeometry(t *testing.T) {
	light, dark := render(t, sample(), Light), render(t, sample(), Dark)
	if light == dark {
		t.Error("light and dark are the same")
	}
	var plain [2]string
	for i, s := range []string{light, dark} {
		for _, f := range strings.Split(s, "#") {
			plain[i] += f[min(6, len(f)):]
		}
	}
	if len(light) != len(dark) || plain[0] != plain[1] {
		t.Error("light and dark differ in more than colours")
	}
}

func TestSVGIsWellFormedAndScales(t *testing.T) {
	svg := render(t, sample(), Dark)
	d := xml.NewDecoder(strings.NewReader(svg))
	for {
		if _, err := d.Token(); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			t.Fatal(err)
		}
	}
	for _, want := range []string{`width="720"`, `viewBox="0 0 720 `, "<title>A &amp; B</title>", "sans-serif", ">0.01<", ">1000 %<", ">&lt;0<"} {
		if !strings.Contains(svg, want) {
			t.Errorf("no %s in the picture", want)
		}
	}
	if strings.Contains(svg, "NaN") || strings.Contains(svg, "Inf") {
		t.Error("a coordinate is no number")
	}
}

// Any two looks differ in dashes or marker, so that they differ without colour;
// and each is seen on its page: WCAG asks for a contrast of 3 for graphics.
func TestLooksAreToldApart(t *testing.T) {
	seen := map[string]bool{}
	for i, l := range looks {
		what := fmt.Sprint(l.dashes, l.shape)
		if seen[what] {
			t.Errorf("look %d is not the only one with dashes and marker %s", i, what)
		}
		seen[what] = true
		for _, theme := range []Theme{Light, Dark} {
			if got := contrast(theme.color(Look(i)), theme.page()); got < 3 {
				t.Errorf("look %d has a contrast of %.1f on a %v page", i, got, theme)
			}
		}
	}
}

// contrast is that of WCAG 2: 1 for the same colour, 21 for black on white.
func contrast(a, b color.Color) float64 {
	x, y := luminance(a), luminance(b)
	return (max(x, y) + 0.05) / (min(x, y) + 0.05)
}

func luminance(c color.Color) float64 {
	r, g, b, _ := c.RGBA()
	linear := func(v uint32) float64 {
		s := float64(v) / 0xffff
		if s <= 0.04045 {
			return s / 12.92
		}
		return math.Pow((s+0.055)/1.055, 2.4)
	}
	return 0.2126*linear(r) + 0.7152*linear(g) + 0.0722*linear(b)
}

// Scales keep order, and put their ends at 0 and 1.
func TestScalesAreMonotonic(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := rapid.SampledFrom([]Scale{Linear, Log, Asinh}).Draw(t, "scale")
		lo := rapid.Float64Range(1e-3, 1).Draw(t, "lo")
		hi := lo * rapid.Float64Range(10, 1e6).Draw(t, "ratio")
		if s.Normalize(lo, hi, lo) != 0 || s.Normalize(lo, hi, hi) != 1 {
			t.Fatal("an end is not where it should be")
		}
		a, b := rapid.Float64Range(lo, hi).Draw(t, "a"), rapid.Float64Range(lo, hi).Draw(t, "b")
		if a < b && s.Normalize(lo, hi, a) > s.Normalize(lo, hi, b) {
			t.Fatalf("%g lies behind %g", a, b)
		}
		if n := len(s.ticks(lo, hi)); n == 0 || n > 12 {
			t.Fatalf("%d ticks from %g to %g", n, lo, hi)
		}
	})
}

func TestTicks(t *testing.T) {
	for _, c := range []struct {
		scale  Scale
		lo, hi float64
		want   string
	}{
		{Linear, 0, 115, "[0 20 40 60 80 100]"},
		{Linear, 0, 35, "[0 10 20 30]"},
		{Log, 0.01, 50, "[0.01 0.1 1 10]"},
		{Asinh, 0, 1000, "[0 1 10 100 1000]"},
	} {
		if got := fmt.Sprint(c.scale.ticks(c.lo, c.hi)); got != c.want {
			t.Errorf("%v from %g to %g: %s, want %s", c.scale, c.lo, c.hi, got, c.want)
		}
	}
}

// The legend lists a look once, in as many columns as fit.
func TestLegend(t *testing.T) {
	l := newLegend(sample().Panels, Light, standard)
	if len(l.entries) != 4 || l.columns < 2 || l.rows()*l.columns < 4 {
		t.Errorf("%d entries in %d columns and %d rows", len(l.entries), l.columns, l.rows())
	}
}
