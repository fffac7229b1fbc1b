package debugui

import (
	"encoding/json"
	"math"
	"testing"
)

func TestCountsAreShort(t *testing.T) {
	for f, want := range map[float64]string{
		0: "0", 1: "1", 0.038123: "0.0381", 0.0001: "<0.001", 3.14159: "3.14", 12.345: "12.3", 99.96: "100", 999.4: "999", 999.6: "1,000",
		1234: "1,234", 9999: "9,999", 9999.7: "10 k", 56789: "56.8 k", 999_900: "1 M", 1 << 20: "1.05 M", 1e9: "1 G", 2.5e12: "2.5 T", 1e17: "100000 T",
		-1234: "-1,234", -0.5: "-0.5", math.Inf(1): "no bound",
	} {
		if got := countText(f); got != want {
			t.Errorf("countText(%v) = %q, want %q", f, got, want)
		}
	}
	if got := countText(math.NaN()); got != none {
		t.Errorf("what is not known is %q", got)
	}
}

func TestDurationsAreReadable(t *testing.T) {
	for s, want := range map[float64]string{
		0: "0 s", 1e-7: "0 s", 0.00083: "830 µs", 0.0009999: "1 ms", 0.0021: "2.1 ms", 0.9999: "1 s", 1.25: "1.25 s", 59.4: "59.4 s",
		60: "1 min", 125: "2 min 5 s", 3599: "59 min 59 s", 3600: "1 h", 11_520: "3 h 12 min", 86400: "1 d", 349_200: "4 d 1 h", 1e10: "never",
	} {
		if got := secondsText(s); got != want {
			t.Errorf("secondsText(%v) = %q, want %q", s, got, want)
		}
	}
}

func TestPartsArePercent(t *testing.T) {
	for f, want := range map[float64]string{0: "0 %", 0.0312: "3.1 %", 1: "100 %", 1.1: "110 %", 0.000004: "<0.001 %"} {
		if got := partText(f); got != want {
			t.Errorf("partText(%v) = %q, want %q", f, got, want)
		}
	}
}

func TestScalesEndAtRoundNumbers(t *testing.T) {
	for f, want := range map[float64]float64{0: 0, -1: 0, 0.7: 0.8, 1: 1, 1.01: 1.2, 37: 40, 820: 1000, 1300: 1500} {
		if got := ceiling(f); math.Abs(got-want) > 1e-9 {
			t.Errorf("ceiling(%v) = %v, want %v", f, got, want)
		}
	}
	if got := ceiling(math.NaN()); got != 0 {
		t.Errorf("ceiling of nothing is %v", got)
	}
}

func TestNumbersAreAlwaysJSON(t *testing.T) {
	for f, want := range map[number]string{1.5: "1.5", number(math.Inf(1)): "null", number(math.Inf(-1)): "null", 1e21: "1e+21"} {
		if got, err := json.Marshal(f); err != nil || string(got) != want {
			t.Errorf("%v is %s, %v, want %s", float64(f), got, err, want)
		}
	}
	if got, err := json.Marshal(unknown); err != nil || string(got) != `{"value":null,"text":"–"}` {
		t.Errorf("what is not known is %s, %v", got, err)
	}
}
