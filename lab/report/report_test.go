package report

import (
	"maps"
	"math"
	"reflect"
	"slices"
	"strings"
	"testing"
)

// sample is data with a bit of everything; the numbers are made up.
func sample() Data {
	d := Data{Made: "2000-01-01, go0"}
	add := func(set, subject string, x float64, name string, f Figures) {
		d.Rows = append(d.Rows, Row{Set: set, Subject: subject, X: x, Name: name, Command: "-load 1", Figures: f})
	}
	f := Figures{Requests: 1000, Operations: 150, Blocked: 4, Delay: 2_400_000, Admitted: 700, Ideal: 710, FalseDenials: 3, Excess: -1, Within: 1000}
	over := f
	over.Excess = 77
	for i, s := range []string{"hybrid, Balanced", "hybrid, Strict", "exact, every request", "static limit/N", "fixed 1 % slices",
		"post-paid, 10 ms", "post-paid, 50 ms", "post-paid, 100 ms", "post-paid, 1 s"} {
		for _, x := range []float64{0.01, 0.1, 1, 10, 50} {
			g := f
			g.Admitted -= int64(float64(i*70) * min(1, x))
			g.Operations = int64(300 / (1 + x*float64(i)))
			add(Load, s, x, "", g)
		}
		for _, x := range []float64{10, 50, 100, 1000} {
			g := f
			g.Excess = float64(i) * x / 2
			add(Interval, s, x, "", g)
		}
		for j, name := range []string{"5/min", "1k/min", "100k/s"} {
			x := []float64{5.0 / 60, 1000.0 / 60, 1e5}[j]
			g := f
			g.Operations = int64(1000 / (1 + x*math.Pow(2, float64(i))))
			add(SizeHalf, s, x, name, g)
			add(SizeOver, s, x, name, g)
		}
		add(Schemes, s, 0, "", f)
	}
	for i, s := range []string{"hybrid, Exact", "hybrid, Strict", "hybrid, Balanced", "hybrid, Within(0.3, 0)"} {
		g := over
		g.Blocked = int64(1000 / math.Pow(20, float64(i)))
		x := []float64{0, 0, 0.1, 0.3}[i]
		add(Dial, s, x, "", g)
		g.Excess = 900 * x
		add(DialOver, s, x, "", g)
	}
	add(Scenarios, "hybrid, Balanced", 0, "1000/min, uniform, 50 %", over)
	f.Admitted = 709
	add(Scenarios, "hybrid, Strict", 0, "1000/min, uniform, 50 %", f)
	slices.SortStableFunc(d.Rows, func(a, b Row) int { return strings.Compare(a.Set, b.Set) })
	return d
}

// blank is a document with all blocks, empty.
func blank(d Data) string {
	var b strings.Builder
	b.WriteString("# Accuracy\n")
	names := slices.Collect(maps.Keys(d.tables()))
	for _, f := range d.figures() {
		names = append(names, "chart "+f.name)
	}
	for _, name := range slices.Sorted(slices.Values(names)) {
		begin, end := markers(name)
		b.WriteString("\n" + begin + end + "text\n")
	}
	return b.String()
}

func TestDataSurviveTheFile(t *testing.T) {
	file, err := sample().JSON()
	if err != nil {
		t.Fatal(err)
	}
	got, err := Parse(file)
	if err != nil || !reflect.DeepEqual(got, sample()) {
		t.Errorf("read back: %v", err)
	}
	if lines := strings.Count(string(file), "\n"); lines != len(sample().Rows)+2 {
		t.Errorf("%d lines for %d rows", lines, len(sample().Rows))
	}
	if _, err := Parse([]byte(`{"Made": "", "Rows": [{"Sett": ""}]}`)); err == nil {
		t.Error("an unknown field was read")
	}
}

// What is generated from a generated document is that document.
func TestFilesAreAFixedPoint(t *testing.T) {
	first, err := sample().Files(blank(sample()))
	if err != nil {
		t.Fatal(err)
	}
	if len(first) != 2+2*4 {
		t.Errorf("%d files", len(first))
	}
	d, err := Parse(first[Numbers])
	if err != nil {
		t.Fatal(err)
	}
	second, err := d.Files(string(first[Document]))
	if err != nil {
		t.Fatal(err)
	}
	for path, want := range first {
		if string(second[path]) != string(want) {
			t.Errorf("%s differs when it is made again", path)
		}
	}
}

func TestDocument(t *testing.T) {
	files, err := sample().Files(blank(sample()))
	if err != nil {
		t.Fatal(err)
	}
	doc := string(files[Document])
	for _, want := range []string{
		"# Accuracy\n",
		"| 1000/min, uniform, 50 % | 0.1500 (≤ 0.1) ✗ | 0.40 % (≤ 0.5 %) | 7.7 % | 99.9 % (≥ 100 %) ✗ | 0.30 % |\n",
		"| Balanced | 10 % | 9.0 % | 0.20 % | 0.0024 ms | 0.1500 | 98.6 % |\n",
		"| static limit/N | 0.1500 | 0.40 % | 0.0024 ms | 98.6 % | 0.0 % |\n",
		`<source media="(prefers-color-scheme: dark)" srcset="img/dial-dark.svg">`,
		"2000-01-01, go0; times are virtual",
	} {
		if !strings.Contains(doc, want) {
			t.Errorf("no %q in\n%s", want, doc)
		}
	}
	for _, f := range sample().figures() {
		for _, ext := range []string{"-light.svg", "-dark.svg"} {
			if len(files["docs/img/"+f.name+ext]) == 0 {
				t.Errorf("no picture %s%s", f.name, ext)
			}
		}
	}
}

func TestBlocksMustBeThereOnce(t *testing.T) {
	begin, end := markers("a")
	if got, err := replace("x\n"+begin+"old\n"+end+"y\n", "a", "new\n"); err != nil || got != "x\n"+begin+"new\n"+end+"y\n" {
		t.Errorf("got %q, %v", got, err)
	}
	for _, doc := range []string{"", begin, end + begin, begin + end + begin + end} {
		if _, err := replace(doc, "a", "new"); err == nil {
			t.Errorf("%q was taken", doc)
		}
	}
}

func TestMilliseconds(t *testing.T) {
	for ms, want := range map[float64]string{0.6: "0.6 ms", 0.0024: "2.4 µs", 12.34: "12 ms", 0.0456: "46 µs", 0: "0 µs"} {
		if got := milliseconds(ms); got != want {
			t.Errorf("%g is %q, want %q", ms, got, want)
		}
	}
}

// An empty file of numbers makes empty pictures, and no panic.
func TestNothingMeasured(t *testing.T) {
	if _, err := (Data{}).Files(blank(Data{})); err != nil {
		t.Error(err)
	}
}
