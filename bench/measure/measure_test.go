package measure

import (
	"context"
	"errors"
	"math"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/hybridlimit/hybrid/bench/peer"
	"github.com/hybridlimit/hybrid/bench/report"
)

// tiny measures everything, and nothing well.
func tiny() Config {
	return Config{
		Limit:  peer.Limit{Count: 1000, Period: time.Minute},
		Sizes:  []int{1, 16, 64},
		Round:  2 * time.Millisecond,
		Rounds: 1,
		Delays: []time.Duration{0, 2 * time.Millisecond},
		Pace:   100 * time.Millisecond, Warm: 100 * time.Millisecond,
		Flood:   20 * time.Millisecond,
		Traffic: 50 * time.Millisecond, Rate: 2000, Nodes: 3,
		Crowd: 100 * time.Millisecond,
	}
}

func needRedis(t *testing.T) {
	t.Helper()
	if _, err := exec.LookPath("redis-server"); err != nil && os.Getenv("HYBRID_REQUIRE_REDIS") != "1" {
		t.Skip(err)
	}
}

// The whole comparison, small: every table is there, every contestant in the
// tables that it belongs to, and the numbers are numbers.
func TestTheWholeComparison(t *testing.T) {
	needRedis(t)
	res, err := Run(t.Context(), tiny(), t.Logf)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for i := range res.Tables {
		table := &res.Tables[i]
		names = append(names, table.Name)
		checkTable(t, table)
		if strings.Contains(table.Markdown(Why), "NaN") {
			t.Errorf("%s: NaN in the document", table.Name)
		}
	}
	if !slices.Equal(names, Tables) {
		t.Fatalf("tables %v, want %v", names, Tables)
	}
	if res.Redis == "unknown" {
		t.Error("Redis is of unknown version")
	}
	checkRows(t, &res.Tables[0], kinds(peer.Memory))
	checkRows(t, &res.Tables[1], kinds(peer.Redis))
	checkRows(t, &res.Tables[2], peer.All())
	checkFleet(t, &res.Tables[5])
}

// checkTable wants positive numbers, none missing of the library's own.
func checkTable(t *testing.T, table *report.Table) {
	t.Helper()
	for _, row := range table.Rows {
		if len(row.Values) != len(table.Columns) {
			t.Errorf("%s: %s has %d numbers, want %d", table.Name, row.Name, len(row.Values), len(table.Columns))
			continue
		}
		for i, v := range row.Values {
			if math.IsInf(v, 0) || v < 0 && table.Name != "heap" || math.IsNaN(v) && row.Role == report.Ours {
				t.Errorf("%s: %s: %s: %v", table.Name, row.Name, table.Columns[i].Head, v)
			}
		}
	}
}

func checkRows(t *testing.T, table *report.Table, kinds []peer.Kind) {
	t.Helper()
	for _, k := range kinds {
		if !slices.ContainsFunc(table.Rows, func(r report.Row) bool { return r.Name == k.Name }) {
			t.Errorf("%s: no row of %s", table.Name, k.Name)
		}
	}
	if len(table.Rows) != len(kinds) {
		t.Errorf("%s: %d rows, want %d", table.Name, len(table.Rows), len(kinds))
	}
}

// checkFleet wants of three nodes what they promise: one limit through Redis,
// three without.
func checkFleet(t *testing.T, table *report.Table) {
	t.Helper()
	want := map[string][2]float64{
		peer.Strict.Name: {50, 100}, peer.Balanced.Name: {50, 110}, peer.Exact.Name: {50, 100}, peer.Take.Name: {50, 100},
		"redis_rate": {50, 101}, "throttled (memory)": {150, 301}, "x/time/rate in an xsync map": {150, 301},
	}
	for _, row := range table.Rows {
		if bounds, ok := want[row.Name]; ok && (row.Values[0] < bounds[0] || row.Values[0] > bounds[1]) {
			t.Errorf("%s admitted %v %% of the limit, want %v", row.Name, row.Values[0], bounds)
		}
	}
}

func TestAnInterruptedRunEnds(t *testing.T) {
	needRedis(t)
	ctx, cancel := context.WithCancel(t.Context())
	c := tiny()
	c.Age = time.Hour
	time.AfterFunc(300*time.Millisecond, cancel)
	if _, err := Run(ctx, c, t.Logf); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v, want that it was interrupted", err)
	}
}

func TestMapsAreCompared(t *testing.T) {
	table, err := Maps(t.Context(), tiny(), t.Logf)
	if err != nil {
		t.Fatal(err)
	}
	if len(table.Rows) != len(maps) {
		t.Fatalf("%d rows", len(table.Rows))
	}
	for _, row := range table.Rows {
		if len(row.Values) != len(table.Columns) {
			t.Errorf("%s: %d numbers for %d columns", row.Name, len(row.Values), len(table.Columns))
		}
	}
}

func TestInvalidConfigsAreRefused(t *testing.T) {
	for name, change := range map[string]func(*Config){
		"table":     func(c *Config) { c.Only = []string{"speed"} },
		"size":      func(c *Config) { c.Sizes = []int{1, 100} },
		"order":     func(c *Config) { c.Sizes = []int{64, 16} },
		"no size":   func(c *Config) { c.Sizes = nil },
		"rounds":    func(c *Config) { c.Rounds = 0 },
		"duration":  func(c *Config) { c.Flood = 0 },
		"no delays": func(c *Config) { c.Delays = nil },
	} {
		c := tiny()
		change(&c)
		if _, err := Run(t.Context(), c, t.Logf); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}

// perCall is held against a call of known length.
func TestPerCallIsTheTimeBetweenCalls(t *testing.T) {
	const nap = 5 * time.Millisecond
	start := func(int) int { return 0 }
	call := func(int) { time.Sleep(nap) }
	if ns := perCall(1, 60*time.Millisecond, start, call); ns < float64(nap) {
		t.Errorf("one worker: %v between calls, each takes %v", time.Duration(ns), nap)
	}
	if ns := perCall(4, 60*time.Millisecond, start, call); ns < float64(nap)/4 || ns >= float64(nap) {
		t.Errorf("four workers: %v between calls, each takes %v", time.Duration(ns), nap)
	}
}

// Each worker counts up from its place, so that all keys have their turn.
func TestWorkersStartAtTheirPlaces(t *testing.T) {
	var low, high atomic.Int64
	perCall(2, 5*time.Millisecond, func(w int) int { return w << 40 }, func(i int) {
		if i < 1<<40 {
			low.Add(1)
		} else {
			high.Add(1)
		}
	})
	if low.Load() == 0 || high.Load() == 0 {
		t.Errorf("%d calls from the first place, %d from the second", low.Load(), high.Load())
	}
}

func TestPaceDoesNotWaitForAnswers(t *testing.T) {
	var calls atomic.Int64
	begin := time.Now()
	made := pace(20, 200*time.Millisecond, 10*time.Millisecond, func(int) {
		calls.Add(1)
		time.Sleep(100 * time.Millisecond)
	})
	if made != 20 || calls.Load() != 20 {
		t.Errorf("%d calls, %d counted, want 20", calls.Load(), made)
	}
	if took := time.Since(begin); took < 290*time.Millisecond || took > 1500*time.Millisecond {
		t.Errorf("20 calls of 100 ms, one every 10 ms, took %v", took)
	}
}

func TestQuantiles(t *testing.T) {
	list := []float64{5, 1, 4, 2, 3}
	if got := median(list); got != 3 {
		t.Errorf("median %v", got)
	}
	if got := quantile(list, 0.99); got != 5 {
		t.Errorf("p99 %v", got)
	}
	if got := mean(list); got != 3 {
		t.Errorf("mean %v", got)
	}
	if got := quantile([]float64(nil), 0.5); got != 0 {
		t.Errorf("of nothing: %v", got)
	}
}

func TestReasonsAreOfContestantsThatThereAre(t *testing.T) {
	known := map[string]bool{}
	for _, k := range peer.All() {
		known[k.Name] = true
	}
	for _, m := range maps {
		known[m.name] = true
	}
	for table, rows := range reasons {
		if !slices.Contains(append(Tables, "maps"), table) {
			t.Errorf("no table %q", table)
		}
		for row, reason := range rows {
			if !known[row] || !strings.HasSuffix(reason, ".") {
				t.Errorf("%s, %s: %q", table, row, reason)
			}
		}
	}
}
