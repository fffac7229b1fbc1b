package debugui

import (
	"encoding/json"
	"math"
	"strconv"
	"strings"
	"time"
)

// figure is one number, for programs and for people.
type figure struct {
	Value number `json:"value"` // in the unit that the field's name says; null if it is not known or has no bound
	Text  string `json:"text"`
}

// number is a float of which JSON knows all values: what is not finite is null.
type number float64

// MarshalJSON implements json.Marshaler.
func (n number) MarshalJSON() ([]byte, error) {
	if f := float64(n); !math.IsNaN(f) && !math.IsInf(f, 0) {
		return json.Marshal(f)
	}
	return []byte("null"), nil
}

// unknown is what cannot be told yet: a rate needs two looks.
var unknown = figure{Value: number(math.NaN()), Text: none}

const none = "–"

func countOf[N int | int64 | uint64 | float64](n N) figure {
	return figure{number(n), countText(float64(n))}
}

func rateOf(perSecond float64) figure {
	if math.IsNaN(perSecond) {
		return unknown
	}
	return figure{number(perSecond), countText(perSecond) + "/s"}
}

func partOf(part float64) figure { return figure{number(part), partText(part)} }

func secondsOf(s float64) figure { return figure{number(s), secondsText(s)} }

func durationOf(d time.Duration) figure { return secondsOf(d.Seconds()) }

// ratio is a part of a whole, and unknown where there is no whole.
func ratio(part, whole float64) float64 {
	if whole == 0 {
		return math.NaN()
	}
	return part / whole
}

// countText writes a count or a rate with three digits, or four where they are
// as short: 0.038, 12.3, 1,234, 56.7 k.
func countText(f float64) string {
	switch abs := math.Abs(f); {
	case math.IsNaN(f):
		return none
	case math.IsInf(f, 0):
		return "no bound"
	case abs != 0 && abs < 0.0005:
		return "<0.001"
	case abs < 999.5:
		return plain(round(f, 3))
	case abs < 9999.5:
		return grouped(math.Round(f))
	}
	unit, larger := " k", []string{" M", " G", " T"}
	for f = round(f, 3) / 1000; math.Abs(f) >= 1000 && len(larger) > 0; f /= 1000 {
		unit, larger = larger[0], larger[1:]
	}
	return plain(round(f, 3)) + unit
}

// partText writes a part of 1 in percent.
func partText(f float64) string {
	if math.IsNaN(f) || math.IsInf(f, 0) {
		return countText(f)
	}
	return countText(round(100*f, 2)) + " %"
}

// secondsText writes a duration with what a reader needs of it: 830 µs, 2.1 ms,
// 1.25 s, 2 min 5 s, 3 h 12 min, 4 d 1 h.
func secondsText(s float64) string {
	const minute, hour, day = 60, 3600, 86400
	switch {
	case math.IsNaN(s) || math.IsInf(s, 0):
		return countText(s)
	case s < 1e-6:
		return "0 s"
	case s < 0.9995e-3:
		return countText(s*1e6) + " µs"
	case s < 0.9995:
		return countText(s*1e3) + " ms"
	case s < minute:
		return plain(round(s, 3)) + " s"
	case s < hour:
		return twoParts(s, minute, " min", 1, " s")
	case s < day:
		return twoParts(s, hour, " h", minute, " min")
	case s > 100*365*day:
		return "never"
	default:
		return twoParts(s, day, " d", hour, " h")
	}
}

func twoParts(s float64, large int64, largeUnit string, small int64, smallUnit string) string {
	whole := int64(s)
	text := grouped(float64(whole/large)) + largeUnit
	if rest := whole % large / small; rest > 0 {
		text += " " + strconv.FormatInt(rest, 10) + smallUnit
	}
	return text
}

// round keeps so many significant digits.
func round(f float64, digits int) float64 {
	if f == 0 || math.IsNaN(f) || math.IsInf(f, 0) {
		return f
	}
	shift := math.Pow(10, float64(digits-1)-math.Floor(math.Log10(math.Abs(f))))
	return math.Round(f*shift) / shift
}

func plain(f float64) string { return strconv.FormatFloat(f, 'f', -1, 64) }

// grouped writes a whole number with a comma after each three digits.
func grouped(f float64) string {
	digits, sign := strconv.FormatFloat(math.Abs(f), 'f', 0, 64), ""
	if f < 0 {
		sign = "-"
	}
	var parts []string
	for len(digits) > 3 {
		parts = append([]string{digits[len(digits)-3:]}, parts...)
		digits = digits[:len(digits)-3]
	}
	return sign + strings.Join(append([]string{digits}, parts...), ",")
}

// ceiling is the next round number at or above f, for the end of a scale.
func ceiling(f float64) float64 {
	if !(f > 0) {
		return 0
	}
	unit := math.Pow(10, math.Floor(math.Log10(f)))
	for _, step := range []float64{1, 1.2, 1.5, 2, 2.5, 3, 4, 5, 6, 8} {
		if step*unit >= f {
			return step * unit
		}
	}
	return 10 * unit
}

// clock is a moment as logs name it.
func clock(t time.Time) string { return t.UTC().Format("15:04:05") + " UTC" }
