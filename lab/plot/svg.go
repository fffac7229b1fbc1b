package plot

import (
	"bytes"
	"html"
	"image/color"
	"io"
	"regexp"
	"slices"
	"strings"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/font"
	"gonum.org/v1/plot/text"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
	"gonum.org/v1/plot/vg/vgsvg"
)

// sizes are lengths in units of the picture. On a phone the picture is about
// half as wide as it says, so that its font of 22 is one of 11.
type sizes struct {
	width, margin, font vg.Length
	panel, next         vg.Length // height of a panel alone, and of each further one
}

var standard = sizes{width: 720, margin: 8, font: 22, panel: 340, next: 220}

// WriteSVG draws the chart.
func (c Chart) WriteSVG(w io.Writer, theme Theme) error {
	s := standard
	l := newLegend(c.Panels, theme, s)
	height := s.panel + vg.Length(len(c.Panels)-1)*s.next + l.height()
	canvas := vgsvg.New(s.width, height)
	c.draw(draw.New(canvas), l, theme, s)
	var b bytes.Buffer
	if _, err := canvas.WriteTo(&b); err != nil {
		return err
	}
	_, err := io.WriteString(w, c.finish(b.String()))
	return err
}

// draw puts the panels above each other and the legend below them.
func (c Chart) draw(dc draw.Canvas, l legend, theme Theme, s sizes) {
	dc.SetColor(theme.page())
	dc.Fill(dc.Path())
	dc = draw.Crop(dc, s.margin, -s.margin, s.margin, -s.margin)
	l.draw(draw.Crop(dc, 0, 0, 0, l.height()-dc.Size().Y))
	label := s.text(theme.ink())
	label.XAlign = draw.XCenter
	dc.FillText(label, vg.Point{X: dc.Center().X, Y: dc.Min.Y + l.height() + s.font*0.3}, c.X.Label)
	c.drawPanels(draw.Crop(dc, 0, -s.margin, l.height()+s.font*1.3, 0), theme, s)
}

func (c Chart) drawPanels(dc draw.Canvas, theme Theme, s sizes) {
	plots := make([][]*plot.Plot, len(c.Panels))
	for i, p := range c.Panels {
		plots[i] = []*plot.Plot{c.plot(p, i == len(c.Panels)-1, theme, s)}
	}
	heading := s.font * 1.8
	tiles := draw.Tiles{Rows: len(plots), Cols: 1, PadTop: heading, PadY: heading}
	for i, row := range plot.Align(plots, tiles, dc) {
		plots[i][0].Draw(row[0])
		dc.FillText(s.text(theme.ink()), vg.Point{X: dc.Min.X, Y: row[0].Max.Y + s.font*0.5}, c.Panels[i].Y.Label)
	}
}

// plot makes one panel, without the labels of its axes: that of y stands above
// it, where it can be read without turning the head.
func (c Chart) plot(p Panel, last bool, theme Theme, s sizes) *plot.Plot {
	out := plot.New()
	out.BackgroundColor = nil
	x, y := c.X.marks(), p.Y.marks()
	out.Add(grid{theme, x, y})
	if !last {
		x = unlabelled(x)
	}
	s.axis(&out.X, c.X, x, theme)
	s.axis(&out.Y, p.Y, y, theme)
	for _, series := range slices.Backward(p.Series) {
		out.Add(drawing{series, theme, s})
	}
	return out
}

func unlabelled(marks []plot.Tick) []plot.Tick {
	out := make([]plot.Tick, len(marks))
	for i, m := range marks {
		out[i] = plot.Tick{Value: m.Value}
	}
	return out
}

func (s sizes) axis(a *plot.Axis, from Axis, marks []plot.Tick, theme Theme) {
	a.Min, a.Max, a.Scale = from.Min, from.Max, from.Scale
	a.Padding = 0
	a.LineStyle = draw.LineStyle{Color: theme.ink(), Width: 1.5}
	a.Tick.LineStyle, a.Tick.Length = a.LineStyle, 6
	a.Tick.Marker = plot.ConstantTicks(marks)
	a.Tick.Label.Font, a.Tick.Label.Color = s.face(), theme.ink()
}

func (s sizes) face() font.Font {
	return font.Font{Typeface: "Liberation", Variant: "Sans", Size: s.font}
}

func (s sizes) text(c color.Color) text.Style {
	return text.Style{Color: c, Font: s.face(), Handler: plot.DefaultTextHandler}
}

// finish makes the picture scale to the page, names fonts that phones have and
// that are as wide, and adds the title for those who cannot see it.
func (c Chart) finish(svg string) string {
	svg = inPoints.ReplaceAllString(svg, `role="img" width="$1" height="$2"`)
	svg = strings.ReplaceAll(svg, "font-family:Liberation Sans;font-variant:normal;font-weight:normal;font-style:normal",
		"font-family:'Liberation Sans',Arial,Helvetica,sans-serif")
	head := strings.Index(svg, "<g ")
	return svg[:head] + "<title>" + html.EscapeString(c.Title) + "</title>\n" + svg[head:]
}

var inPoints = regexp.MustCompile(`width="([0-9.]+)pt" height="([0-9.]+)pt"`)
