package service

import (
	"bytes"
	"fmt"
	"image/color"
	"math"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/font"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
	"gonum.org/v1/plot/vg/vgsvg"
)

// colours tell the results apart, also for those who see few colours.
var colours = []color.RGBA{
	{0x00, 0x72, 0xB2, 0xff}, {0xD5, 0x5E, 0x00, 0xff}, {0xE6, 0x9F, 0x00, 0xff},
	{0xCC, 0x79, 0xA7, 0xff}, {0x56, 0xB4, 0xE9, 0xff}, {0x66, 0x66, 0x66, 0xff},
}

// nines is where a percentile lies on the axis: 90, 99 and 99.9 at equal distances.
func nines(q float64) float64 { return -math.Log10(1 - q/100) }

// curve is a distribution from its median on, as far as it has requests.
func curve(l latency) (points plotter.XYs) {
	if l.count() == 0 {
		return nil
	}
	last := math.Log10(float64(l.count()))
	for x := nines(50); x < last; x += 0.02 {
		points = append(points, plotter.XY{X: x, Y: milliseconds(l, 100*(1-math.Pow(10, -x)))})
	}
	return append(points, plotter.XY{X: last, Y: milliseconds(l, 100)})
}

// milliseconds are those of a percentile, and at least what the axis begins with.
func milliseconds(l latency, q float64) float64 {
	return max(float64(l.at(q).Nanoseconds())/1e6, fastest)
}

const fastest = 1e-5

// Plot draws what calls add, as SVG, with a line at the usual budget.
func (rep *Report) Plot() ([]byte, error) {
	p := plot.New()
	p.Title.Text = "Latency that the limiter adds to a request"
	p.X.Label.Text, p.Y.Label.Text = "percentile", "added by the call"
	p.Y.Scale = plot.LogScale{}
	p.X.Tick.Marker, p.Y.Tick.Marker = percentileTicks, latencyTicks
	p.Legend.Top, p.Legend.Left = true, true
	p.Add(plotter.NewGrid())
	end := 1.0
	for i, r := range rep.Results {
		points := curve(r.latencies.added)
		if points == nil {
			continue
		}
		end = max(end, points[len(points)-1].X)
		if err := addLine(p, label(r), points, colours[i%len(colours)], nil); err != nil {
			return nil, err
		}
	}
	limit := float64(budget.Nanoseconds()) / 1e6
	dashes := []vg.Length{vg.Points(5), vg.Points(3)}
	if err := addLine(p, "the usual budget, 2 ms", plotter.XYs{{X: nines(50), Y: limit}, {X: end, Y: limit}}, color.RGBA{0xb0, 0, 0, 0xff}, dashes); err != nil {
		return nil, err
	}
	p.Y.Min, p.Y.Max = fastest, max(p.Y.Max, 10)
	return render(p)
}

func label(r *Result) string { return fmt.Sprintf("%s, %d/s", r.Name, r.Plan.Rate) }

func addLine(p *plot.Plot, name string, points plotter.XYs, c color.RGBA, dashes []vg.Length) error {
	l, err := plotter.NewLine(points)
	if err != nil {
		return err
	}
	l.Color, l.Width, l.Dashes = c, vg.Points(1.5), dashes
	p.Add(l)
	p.Legend.Add(name, l)
	return nil
}

var percentileTicks = plot.ConstantTicks{
	{Value: nines(50), Label: "50"}, {Value: 1, Label: "90"}, {Value: 2, Label: "99"}, {Value: 3, Label: "99.9"},
	{Value: 4, Label: "99.99"}, {Value: 5, Label: "99.999"}, {Value: 6, Label: "99.9999"},
}

var latencyTicks = plot.ConstantTicks{
	{Value: 1e-5, Label: "10 ns"}, {Value: 1e-4, Label: "100 ns"}, {Value: 1e-3, Label: "1 µs"}, {Value: 1e-2, Label: "10 µs"},
	{Value: 0.1, Label: "100 µs"}, {Value: 1, Label: "1 ms"}, {Value: 10, Label: "10 ms"}, {Value: 100, Label: "100 ms"}, {Value: 1000, Label: "1 s"},
}

// render draws in a sans-serif face, which viewers replace by one that they have.
func render(p *plot.Plot) ([]byte, error) {
	for _, f := range []*font.Font{
		&p.Title.TextStyle.Font, &p.X.Label.TextStyle.Font, &p.Y.Label.TextStyle.Font,
		&p.X.Tick.Label.Font, &p.Y.Tick.Label.Font, &p.Legend.TextStyle.Font,
	} {
		f.Variant = "Sans"
	}
	canvas := vgsvg.New(8*vg.Inch, 5*vg.Inch)
	p.Draw(draw.New(canvas))
	var out bytes.Buffer
	_, err := canvas.WriteTo(&out)
	return bytes.ReplaceAll(out.Bytes(), []byte("font-family:Liberation Sans;"), []byte("font-family:Liberation Sans,Arial,sans-serif;")), err
}
