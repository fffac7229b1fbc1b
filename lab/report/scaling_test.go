package report

import (
	"reflect"
	"strings"
	"testing"
)

// grown is two points; the numbers are made up.
func grown() Scaling {
	base := Point{
		Name: Base, Axis: Base, Nodes: 20, Keys: 1_000_000, Skew: 0.99, Rate: 50_000, Limit: 1000, Warm: 65, Span: 60,
		Command: "go run ./lab run", Made: "2000-01-01, go0",
		Requests: 3_000_000, Blocked: 9000, Operations: 90_000, Asked: 9000, Refilled: 36_000, Paced: 45_000,
		RoundTrips: 30_000, Polls: 13_200, Sent: 18_000_000, Received: 9_000_000, Remembered: 50_000,
	}
	more := base
	more.Name, more.Axis, more.Nodes, more.Sampled, more.Operations = "nodes 60", ByNodes, 60, true, 270_000
	return Scaling{base, more}
}

const blankScaling = "# Benchmarks\n\n<!-- lab:scaling -->\nstale words\n<!-- end: lab:scaling -->\nrest\n"

func TestScalingSurvivesTheFile(t *testing.T) {
	file, err := grown().JSON()
	if err != nil {
		t.Fatal(err)
	}
	if got, err := ParseScaling(file); err != nil || !reflect.DeepEqual(got, grown()) {
		t.Errorf("read back: %+v, %v", got, err)
	}
	if _, err := ParseScaling([]byte(`[{"Nodess": 1}]`)); err == nil {
		t.Error("an unknown field was read")
	}
}

// What is generated from a generated document is that document; tables have what
// was measured, and what a sample cannot tell only for those with all keys.
func TestScalingSection(t *testing.T) {
	files, err := grown().Files(blankScaling)
	if err != nil {
		t.Fatal(err)
	}
	doc := string(files[ScalingDocument])
	again, err := grown().Files(doc)
	if err != nil || string(again[ScalingDocument]) != doc {
		t.Errorf("made again it differs: %v", err)
	}
	for _, want := range []string{
		"# Benchmarks\n", "rest\n", "2000-01-01, go0",
		"20 nodes, 50k requests a second, 1M keys (Zipf 0.99), 1k/min each, Balanced",
		"| nothing | 0.0300 | ", "| 60 nodes (sample) | 0.0900 | ",
		"| nothing | 720 (", "| 8.8 MB |",
		"| nothing | 10 | 0 | 40 | 0 | 50 | 0 | 0 |\n",
		`<source media="(prefers-color-scheme: dark)" srcset="img/scaling-nodes-dark.svg">`,
	} {
		if !strings.Contains(doc, want) {
			t.Errorf("no %q in\n%s", want, doc)
		}
	}
	if strings.Contains(doc, "stale words") || strings.Count(doc, "60 nodes (sample)") != 2 {
		t.Errorf("the block has more than it should:\n%s", doc)
	}
	if len(files) != 2+2*4 {
		t.Errorf("%d files", len(files))
	}
}

// A document without a place for the section is an error, and no numbers are none.
func TestScalingNeedsItsPlace(t *testing.T) {
	if _, err := grown().Files("# Benchmarks\n"); err == nil {
		t.Error("a document without markers was taken")
	}
	if _, err := (Scaling{}).Files(blankScaling); err != nil {
		t.Errorf("nothing measured: %v", err)
	}
}

func TestPutReplaces(t *testing.T) {
	s := grown()
	p := s[1]
	p.Operations = 7
	if s = s.Put(p); len(s) != 2 || s[1].Operations != 7 {
		t.Errorf("%+v", s)
	}
	p.Name = "nodes 5"
	if s = s.Put(p); len(s) != 3 {
		t.Errorf("%+v", s)
	}
}

func TestAmounts(t *testing.T) {
	for v, want := range map[float64]string{0: "0", 5: "5", 50_000: "50k", 1_500_000: "1.5M", 123_456: "123k", 0.0123: "0.0123"} {
		if got := amount(round(v)); got != want {
			t.Errorf("%g is %q, want %q", v, got, want)
		}
	}
}
