package debugui

import (
	"math"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

// Text can be read in both schemes: its contrast is that of WCAG's level AA, 4.5 to 1.
func TestColoursHaveContrast(t *testing.T) {
	schemes := regexp.MustCompile(`(?s):root \{(.*?)\}`).FindAllStringSubmatch(pageCSS, -1)
	if len(schemes) != 2 {
		t.Fatalf("%d schemes, want light and dark", len(schemes))
	}
	for i, scheme := range schemes {
		colour := map[string]string{}
		for _, m := range regexp.MustCompile(`--([a-z-]+): (#[0-9a-f]+);`).FindAllStringSubmatch(scheme[1], -1) {
			colour[m[1]] = m[2]
		}
		for _, pair := range [][2]string{
			{"text", "back"}, {"text", "panel"}, {"text", "hover"}, {"soft", "back"}, {"soft", "panel"}, {"ok", "ok-back"}, {"text", "warn-back"},
			{"soft", "warn-back"}, {"panel", "warn"}, {"bad-text", "bad-back"}, {"bad", "panel"}, {"warn", "panel"}, {"button-text", "button"},
		} {
			if ratio := contrast(t, colour[pair[0]], colour[pair[1]]); ratio < 4.5 {
				t.Errorf("scheme %d: %s on %s has a contrast of %.1f", i, pair[0], pair[1], ratio)
			}
		}
		for _, path := range paths { // shapes need 3 to 1
			if ratio := contrast(t, colour[path.name], colour["back"]); ratio < 3 {
				t.Errorf("scheme %d: %s on the chart has a contrast of %.1f", i, path.name, ratio)
			}
		}
	}
}

func contrast(t *testing.T, a, b string) float64 {
	t.Helper()
	x, y := luminance(t, a), luminance(t, b)
	return (max(x, y) + 0.05) / (min(x, y) + 0.05)
}

// luminance is that of WCAG 2.
func luminance(t *testing.T, colour string) (sum float64) {
	t.Helper()
	hex := strings.TrimPrefix(colour, "#")
	if len(hex) == 3 {
		hex = string([]byte{hex[0], hex[0], hex[1], hex[1], hex[2], hex[2]})
	}
	for i, weight := range []float64{0.2126, 0.7152, 0.0722} {
		n, err := strconv.ParseUint(hex[2*i:2*i+2], 16, 8)
		if err != nil {
			t.Fatalf("colour %q: %v", colour, err)
		}
		v := float64(n) / 255
		if v <= 0.04045 {
			v /= 12.92
		} else {
			v = math.Pow((v+0.055)/1.055, 2.4)
		}
		sum += weight * v
	}
	return sum
}
