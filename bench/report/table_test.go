package report

import (
	"math"
	"slices"
	"strings"
	"testing"
)

var nan = math.NaN()

func race() *Table {
	return &Table{
		Name: "race", Title: "A race", About: "Run once.", Base: "we",
		Columns: []Column{{Head: "ns", Better: Less}, {Head: "per second", Better: More}, {Head: "percent"}},
		Rows: []Row{
			{"we", Ours, []float64{100, 1000, 99.5}},
			{"quick", Peer, []float64{50, 1000, 400}},
			{"many", Peer, []float64{200, 123456, 1}},
			{"same", Peer, []float64{96, 1040, 100}},
			{"ground", Floor, []float64{1, nan, nan}},
		},
	}
}

func TestWinsAreOfPeersAndBeyondNoise(t *testing.T) {
	wins := race().Wins()
	if len(wins) != 2 || wins[0].Row != "quick" || wins[1].Row != "many" {
		t.Fatalf("got %+v", wins)
	}
	if !slices.Equal(wins[0].Columns, []string{"ns"}) || !slices.Equal(wins[1].Columns, []string{"per second"}) {
		t.Errorf("got %+v", wins)
	}
}

func TestWithoutTheBaseNobodyWins(t *testing.T) {
	table := race()
	table.Base = ""
	if wins := table.Wins(); wins != nil {
		t.Errorf("got %+v", wins)
	}
	table.Base = "we"
	table.Rows[0].Values[0] = nan
	if wins := table.Wins(); len(wins) != 1 || wins[0].Row != "many" {
		t.Errorf("without a number of the base: got %+v", wins)
	}
}

func TestAColumnMayHaveABaseOfItsOwn(t *testing.T) {
	table := race()
	table.Columns[0].Base = "many"
	if wins := table.Wins(); len(wins) != 3 || wins[0].Row != "quick" || wins[2].Row != "same" {
		t.Errorf("got %+v", wins)
	}
	if got := table.Markdown(func(string, string) string { return "" }); !strings.Contains(got, "| quick | 50.0 (0.25×) |") {
		t.Errorf("no ratio to the column's base in\n%s", got)
	}
}

func TestNumbersHaveThreeDigits(t *testing.T) {
	for v, want := range map[float64]string{
		0: "0", 1: "1.00", 0.012345: "0.0123", 9.996: "10.00", 45.67: "45.7", 123.4: "123",
		1234: "1,230", 1234567: "1,230,000", -1234.5: "-1,230", math.Inf(1): "–",
	} {
		if got := Number(v); got != want {
			t.Errorf("%v: got %q, want %q", v, got, want)
		}
	}
	if got := Number(nan); got != "–" {
		t.Errorf("NaN: got %q", got)
	}
}

func TestMarkdownNamesWhoIsAheadAndWhy(t *testing.T) {
	table := race()
	table.Notes = []string{"it rained"}
	got := table.Markdown(func(name, row string) string {
		return map[string]string{"race/quick": "it had a head start."}[name+"/"+row]
	})
	for _, want := range []string{
		"### A race\n\nRun once.\n\n",
		"|  | ns | per second | percent |\n|---|---:|---:|---:|\n",
		"| we | 100 (1.0×) | 1,000 (1.0×) | 99.5 |\n",
		"| quick | 50.0 (0.50×) | 1,000 (1.0×) | 400 |\n",
		"| ground | 1.00 (0.010×) | – | – |\n",
		"- it rained\n",
		"- **quick is ahead** (ns): it had a head start.\n",
		"- **many is ahead** (per second)\n",
	} {
		if !strings.Contains(got, want) {
			t.Errorf("no %q in\n%s", want, got)
		}
	}
}

func TestPrintAlignsItsColumns(t *testing.T) {
	var b strings.Builder
	race().Print(&b)
	lines := strings.Split(b.String(), "\n")
	i := slices.IndexFunc(lines, func(l string) bool { return strings.HasPrefix(l, "we ") })
	if i < 1 {
		t.Fatalf("no row in\n%s", b.String())
	}
	for _, line := range lines[i-1 : i+5] {
		if got, want := len([]rune(line)), len([]rune(lines[i])); got != want {
			t.Errorf("%q is %d wide, want %d", line, got, want)
		}
	}
}

func TestMadeNamesNoMachine(t *testing.T) {
	got := Made("7.0.0")
	for _, want := range []string{"commit ", "go1.", "Redis 7.0.0"} {
		if !strings.Contains(got, want) {
			t.Errorf("no %q in %q", want, got)
		}
	}
}
