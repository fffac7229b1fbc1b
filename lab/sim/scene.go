package sim

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"
)

// Scene is a part of a run in which load and placement stay the same.
type Scene struct {
	For   time.Duration
	Load  float64 // as Experiment.Load
	Rate  float64 // as Experiment.Rate
	Place Place
	Aside bool // what is admitted in it is not judged, only what it costs
}

// Scenes are played in turn, again and again.
type Scenes []Scene

// String is what Set reads.
func (s *Scenes) String() string {
	var parts []string
	for _, c := range *s {
		amount := strconv.FormatFloat(c.Load, 'g', -1, 64) + "x"
		if c.Rate > 0 {
			amount = strconv.FormatFloat(c.Rate, 'g', -1, 64) + "/s"
		}
		text := fmt.Sprintf("%v %s %s", c.For, amount, &c.Place)
		if c.Aside {
			text += " aside"
		}
		parts = append(parts, text)
	}
	return strings.Join(parts, ", ")
}

// Set reads "2m 0.5x uniform aside, 1m 3x one": how long, how much (a multiple of
// the limit, or "50/s"), where, and whether admissions in it are not judged.
func (s *Scenes) Set(text string) error {
	*s = nil
	if text == "" {
		return nil
	}
	for part := range strings.SplitSeq(text, ",") {
		c, err := readScene(strings.Fields(part))
		if err != nil {
			return err
		}
		*s = append(*s, c)
	}
	return nil
}

func readScene(f []string) (c Scene, err error) {
	wrong := errors.New(`allowed scenes like "2m 0.5x uniform aside, 1m 3x one"`)
	if len(f) < 3 || len(f) > 4 || len(f) == 4 && f[3] != "aside" {
		return c, wrong
	}
	c.Aside = len(f) == 4
	if c.For, err = time.ParseDuration(f[0]); err != nil || c.For <= 0 {
		return c, wrong
	}
	amount := &c.Load
	text, isLoad := strings.CutSuffix(f[1], "x")
	if !isLoad {
		amount = &c.Rate
		text = strings.TrimSuffix(text, "/s")
	}
	if *amount, err = strconv.ParseFloat(text, 64); err != nil || !(*amount >= 0) {
		return c, wrong
	}
	return c, c.Place.Set(f[2])
}

// stretch is a scene on the time line of a run. Measured ones are at most a fill
// time long: each is a window of its own.
type stretch struct {
	from, to time.Duration // since the start
	rate     float64       // requests per second
	place    Place
	window   int // its number among the measured ones, −1: warm-up
	aside    bool
}

// stretches is the time line.
func (e Experiment) stretches() []stretch {
	first := Scene{For: e.Span, Load: e.Load, Rate: e.Rate, Place: e.Place}
	scenes := e.Scenes
	if len(scenes) == 0 {
		scenes = Scenes{first}
	} else if e.Load == 0 && e.Rate == 0 {
		first = scenes[0]
	}
	line, end := e.warmUp(first), e.Warm+e.Span
	for i, warm := 0, len(line); line[len(line)-1].to < end; i++ {
		c := scenes[i%len(scenes)]
		from := line[len(line)-1].to
		line = append(line, e.windows(c, from, min(from+c.For, end), len(line)-warm)...)
	}
	return line
}

// warmUp is what comes before the measured part: a silence, and then the first scene.
func (e Experiment) warmUp(first Scene) (line []stretch) {
	if e.Still > 0 {
		line = append(line, stretch{to: e.Still, place: first.Place, window: -1})
	}
	warm := stretch{from: e.Still, to: e.Warm, place: first.Place, window: -1}
	if !e.Quiet {
		warm.rate = e.offered(first.Load, first.Rate)
	}
	return append(line, warm)
}

// windows divides a scene into fill times. What is left over joins the last one
// if it is less than half of it.
func (e Experiment) windows(c Scene, from, to time.Duration, number int) (line []stretch) {
	fill := e.Fill()
	for from < to {
		w := stretch{from: from, to: min(from+fill, to), rate: e.offered(c.Load, c.Rate), place: c.Place, window: number, aside: c.Aside}
		if to-w.to < fill/2 {
			w.to = to
		}
		line = append(line, w)
		from, number = w.to, number+1
	}
	return line
}
