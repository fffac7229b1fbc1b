package sim

import (
	"errors"
	"fmt"
	"math"
	"strings"
	"time"
)

// Trip is how long a message to the store and its answer take together, half
// of it each way: always the same, or drawn anew for each message.
type Trip struct {
	Kind TripKind
	Mean time.Duration // Fixed and Exponential
	Low  time.Duration // Uniformly
	High time.Duration // Uniformly; Exponential: no trip is longer
}

// TripKind is a distribution of round trips.
type TripKind uint8

// Distributions of round trips.
const (
	Fixed TripKind = iota
	Exponential
	Uniformly
)

// Draw is the round trip for a random number in 0..1.
func (t Trip) Draw(u float64) time.Duration {
	switch t.Kind {
	case Exponential:
		return min(time.Duration(-math.Log1p(-u)*float64(t.Mean)), t.High)
	case Uniformly:
		return t.Low + time.Duration(u*float64(t.High-t.Low))
	}
	return t.Mean
}

// most is the longest round trip.
func (t Trip) most() time.Duration {
	if t.Kind == Fixed {
		return t.Mean
	}
	return t.High
}

// String is what Set reads.
func (t *Trip) String() string {
	switch t.Kind {
	case Exponential:
		return fmt.Sprintf("exp:%v:%v", t.Mean, t.High)
	case Uniformly:
		return fmt.Sprintf("uniform:%v:%v", t.Low, t.High)
	}
	if t.Mean == 0 {
		return ""
	}
	return t.Mean.String()
}

// Set reads "600us", "exp:MEAN:MOST" or "uniform:LEAST:MOST".
func (t *Trip) Set(s string) error {
	wrong := errors.New("allowed a duration, exp:MEAN:MOST or uniform:LEAST:MOST, from 1us on")
	f := strings.Split(s, ":")
	var d []time.Duration
	for _, text := range f[max(0, len(f)-2):] {
		if v, err := time.ParseDuration(text); err == nil && v >= time.Microsecond {
			d = append(d, v)
		}
	}
	switch {
	case len(f) == 1 && len(d) == 1:
		*t = Trip{Mean: d[0]}
	case len(f) == 3 && len(d) == 2 && f[0] == "exp":
		*t = Trip{Kind: Exponential, Mean: d[0], High: d[1]}
	case len(f) == 3 && len(d) == 2 && f[0] == "uniform" && d[0] <= d[1]:
		*t = Trip{Kind: Uniformly, Low: d[0], High: d[1]}
	default:
		return wrong
	}
	return nil
}
