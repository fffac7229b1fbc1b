package store

import (
	"context"
	"errors"
	"io"
	"math"
	"os"
	"os/exec"
	"reflect"
	"strings"
	"testing"

	"github.com/hybridlimit/hybrid/bench/report"
	"github.com/hybridlimit/hybrid/exact"
	"github.com/hybridlimit/hybrid/slice"
)

func start(t *testing.T) *server {
	t.Helper()
	s, err := startServer()
	if errors.Is(err, exec.ErrNotFound) && os.Getenv("HYBRID_REQUIRE_REDIS") != "1" {
		t.Skip(err)
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.stop)
	return s
}

func newBench(t *testing.T) *bench {
	t.Helper()
	b := &bench{server: start(t)}
	source, err := settleSource(t.Context(), b.server.Addr)
	if err != nil {
		t.Fatal(err)
	}
	b.source = source
	return b
}

// What is compared has to be the same but for how it is stored: each variant gives the
// answers of the script, settle by settle.
func TestVariantsSettleAlike(t *testing.T) {
	b := newBench(t)
	script := answers(t, b, variant{name: "script"})
	for _, v := range []variant{asHash, asDeadline, readAtOnce} {
		if got := answers(t, b, v); !reflect.DeepEqual(got, script) {
			t.Errorf("%s:\n got %v\nwant %v", v.name, got, script)
		}
	}
}

// answers is what a variant says to three settles of three accounts, without the time.
func answers(t *testing.T, b *bench, v variant) (all []slice.Grant) {
	t.Helper()
	source, err := v.of(b.source)
	if err != nil {
		t.Fatal(err)
	}
	s, err := b.subject(t.Context(), v.name, source, false)
	if err != nil {
		t.Fatal(err)
	}
	rule := exact.PerDay(1).WithBurst(1000).Rule()
	rule.Rate = 1e-18 // nothing drains
	var settles []*slice.Settle
	for _, key := range []string{"a", "b", "c"} {
		settles = append(settles, &slice.Settle{Account: v.name + key, Rule: rule})
	}
	for _, u := range []slice.Usage{
		{Needs: []slice.Need{{Cost: 3, Count: 2}, {Cost: 600, Count: 2}}, Want: 9, Least: 1, Unit: 1, Divisor: 2},
		{Charged: 7.25, Want: 40, Least: 2, Unit: 3, Divisor: 4},
		{Charged: -1000},
	} {
		for i, e := range settles {
			e.Usage = u
			e.Usage.Spent, e.Usage.Tag = int64(i), e.Grant.Tag
		}
		s.together.Settle(t.Context(), settles)
		for _, e := range settles {
			if e.Outcome != slice.Ran {
				t.Fatalf("%s: %v", v.name, e.Err)
			}
			g := e.Grant
			g.Now, g.Clock, g.Life, g.Tag = 0, 0, 0, slice.Tag{}
			all = append(all, g)
		}
	}
	return all
}

// A change of the script that a variant does not know must not go unnoticed.
func TestAnEditNeedsItsPlace(t *testing.T) {
	for _, source := range []string{"", "call('GET', key) call('GET', key)"} {
		if got, err := readAtOnce.of(source); err == nil {
			t.Errorf("%q became %q", source, got)
		}
	}
}

// Apart, each account has a call of its own, and all of them go at once.
func TestApartIsAPipeline(t *testing.T) {
	b := newBench(t)
	s, err := b.subject(t.Context(), "settle", "", false)
	if err != nil {
		t.Fatal(err)
	}
	c := &cell{subject: s, kind: kinds()[1], way: way{size: 64, alone: true}}
	if err := b.prepare(t.Context(), c); err != nil {
		t.Fatal(err)
	}
	calls := func() float64 {
		info := b.server.rdb.Info(t.Context(), "commandstats").Val()
		_, list, _ := strings.Cut(info, "cmdstat_evalsha:")
		return number(field(list[:strings.Index(list, "\r")], "calls"))
	}
	before, err := b.server.Usage(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	first := calls()
	c.settle(t.Context())
	if n := calls() - first; n != 64 {
		t.Errorf("64 accounts took %v calls", n)
	}
	after, err := b.server.Usage(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	// Two looks at the calls are among them, and a pipeline arrives in a few pieces.
	if reads := after.Since(before).Reads - 2; reads < 1 || reads > 16 {
		t.Errorf("the server read %d times for 64 accounts: is that a pipeline?", reads)
	}
}

// A short run fills every cell, and what does less takes less.
func TestMeasure(t *testing.T) {
	start(t) // or it is skipped
	rep, err := Measure(context.Background(), Settings{Rounds: 3, Sample: 640, Memory: 3000, Calls: 20}, io.Discard)
	if err != nil {
		t.Fatal(err)
	}
	for _, table := range rep.Tables {
		for _, row := range table.Rows {
			for i, v := range row.Values {
				if math.IsNaN(v) || v <= 0 {
					t.Errorf("%s, %s, %s: %v", table.Title, row.Name, table.Columns[i].Head, v)
				}
			}
		}
	}
	script := rep.Tables[0]
	last := len(script.Rows) - 1
	const batch = 1
	tick, floor, nothing := script.Rows[0].Values[batch], script.Rows[last-1].Values[batch], script.Rows[last].Values[batch]
	if !(nothing < floor && floor < tick) {
		t.Errorf("nothing %v µs, GET and SET %v µs, a tick %v µs", nothing, floor, tick)
	}
	text, err := report.Replace("<!-- bench:store -->\n<!-- end: bench:store -->\n", "bench:store", rep.Markdown("today"))
	if err != nil || !strings.Contains(text, "today") || !strings.Contains(text, floorName) {
		t.Errorf("%v: %s", err, text)
	}
}
