package store

import (
	"context"
	"fmt"
	"io"
	"math"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/hybridlimit/hybrid/bench/report"
)

// Report is all that was measured.
type Report struct {
	Redis  string // version
	Tables []report.Table
}

// Measure runs everything, and says on out what it does.
func Measure(ctx context.Context, set Settings, out io.Writer) (*Report, error) {
	s, err := startServer()
	if err != nil {
		return nil, err
	}
	defer s.stop()
	b := &bench{Settings: set, server: s}
	if b.source, err = settleSource(ctx, s.Addr); err != nil {
		return nil, err
	}
	times, err := b.times(ctx, out)
	if err != nil {
		return nil, err
	}
	layouts, err := b.layouts(ctx, out)
	if err != nil {
		return nil, err
	}
	longest, err := b.longest(ctx, out)
	if err != nil {
		return nil, err
	}
	return &Report{Redis: s.Version(ctx), Tables: append(times, layouts, longest)}, nil
}

// times are two tables: what an account costs in time of the script, and of the process.
func (b *bench) times(ctx context.Context, out io.Writer) ([]report.Table, error) {
	settle, err := b.subject(ctx, "settle", "", false)
	if err != nil {
		return nil, err
	}
	b.cells = nil
	b.add(settle, kinds(), ways)
	for _, stub := range []struct{ name, source string }{{floorName, getAndSet}, {"floor: a script that does nothing", nothing}} {
		s, err := b.subject(ctx, stub.name, stub.source, true)
		if err != nil {
			return nil, err
		}
		tick := kinds()[0]
		tick.name = stub.name
		b.add(s, []kind{tick}, ways)
	}
	if err := b.run(ctx, out); err != nil {
		return nil, err
	}
	script := report.Table{Name: "script", Base: floorName,
		Title: "Time of the script per account",
		About: "µs of `cmdstat_evalsha`, the least of the rounds; in brackets against the floor of the same column: a script that, with the same keys and arguments, does a GET and a SET with PX per account and nothing else."}
	cpu := report.Table{Name: "cpu", Base: floorName,
		Title: "Processor time per account",
		About: "µs of `used_cpu_user` and `used_cpu_sys`: the same runs with what Redis does around a script, mostly reading the call and writing the reply."}
	for _, w := range ways {
		script.Columns = append(script.Columns, report.Column{Head: w.head, Better: report.Less})
		cpu.Columns = append(cpu.Columns, report.Column{Head: w.head, Better: report.Less})
	}
	for i := 0; i < len(b.cells); i += len(ways) {
		rows := [2]report.Row{{Name: b.cells[i].kind.name, Role: report.Ours}, {Name: b.cells[i].kind.name, Role: report.Ours}}
		for _, c := range b.cells[i : i+len(ways)] {
			if c.subject.stub {
				rows[0].Role, rows[1].Role = report.Floor, report.Floor
			}
			cost := c.cost()
			rows[0].Values = append(rows[0].Values, cost.script)
			rows[1].Values = append(rows[1].Values, cost.cpu)
		}
		script.Rows, cpu.Rows = append(script.Rows, rows[0]), append(cpu.Rows, rows[1])
	}
	return []report.Table{script, cpu}, nil
}

const (
	floorName  = "floor: GET and SET alone"
	layoutName = "the string, GET and SET with PX"
)

// layouts are other ways to store an account, and to write it, with the same arithmetic.
func (b *bench) layouts(ctx context.Context, out io.Writer) (report.Table, error) {
	t := report.Table{Name: "layouts", Base: layoutName,
		Title: "Other ways to store and to write an account",
		About: fmt.Sprintf("The settle script with nothing else changed: µs of the script per account, and bytes per account with a key of 16 bytes, of %s accounts with slices out.", report.Number(float64(b.Memory))),
		Columns: []report.Column{{Head: "tick, 64 a call", Better: report.Less}, {Head: "need, 64 a call", Better: report.Less}, {Head: "need, 1 a call", Better: report.Less},
			{Head: "MEMORY USAGE", Better: report.Less}, {Head: "of used_memory", Better: report.Less}}}
	variants := []variant{{name: layoutName}, asHash, readAtOnce, asDeadline}
	b.cells = nil
	for _, v := range variants {
		source, err := v.of(b.source)
		if err != nil {
			return t, err
		}
		s, err := b.subject(ctx, v.name, source, false)
		if err != nil {
			return t, err
		}
		b.add(s, kinds()[:1], ways[1:2])
		b.add(s, kinds()[1:2], []way{ways[1], ways[0]})
	}
	if err := b.run(ctx, out); err != nil {
		return t, err
	}
	for i, v := range variants {
		row := report.Row{Name: v.name, Role: report.Peer}
		for _, c := range b.cells[3*i : 3*i+3] {
			row.Values = append(row.Values, c.cost().script)
		}
		fmt.Fprintf(out, "memory of %s\n", v.name)
		source, err := v.of(b.source)
		if err != nil {
			return t, err
		}
		m, err := memoryOf(ctx, source, b.Memory)
		if err != nil {
			return t, err
		}
		row.Values = append(row.Values, m.alone, m.share)
		t.Rows = append(t.Rows, row)
	}
	t.Rows[0].Role = report.Ours
	return t, nil
}

// longest is how long Redis serves nobody else.
func (b *bench) longest(ctx context.Context, out io.Writer) (report.Table, error) {
	t := report.Table{Name: "longest", Title: "The longest call",
		About:   fmt.Sprintf("µs that one call of the script takes, of %d calls, by Redis's own histogram. Nobody else is served meanwhile.", b.Calls),
		Columns: []report.Column{{Head: "half of them within"}, {Head: "99 % within"}, {Head: "the longest"}}}
	settle, err := b.subject(ctx, "settle", "", false)
	if err != nil {
		return t, err
	}
	full := crowded()
	for _, k := range append(kinds(), full) {
		fmt.Fprintf(out, "longest call: %s\n", k.name)
		c := &cell{subject: settle, kind: k, way: ways[1]}
		if err := b.prepare(ctx, c); err != nil {
			return t, err
		}
		if err := b.server.forget(ctx); err != nil {
			return t, err
		}
		for range b.Calls {
			c.settle(ctx)
		}
		us, err := b.server.longest(ctx)
		if err != nil {
			return t, err
		}
		t.Rows = append(t.Rows, report.Row{Name: "64 × " + k.name, Role: report.Ours, Values: orNone(us)})
	}
	return t, nil
}

// orNone makes NaN of what was not told.
func orNone(us [3]float64) []float64 {
	if us == [3]float64{} {
		return []float64{math.NaN(), math.NaN(), math.NaN()}
	}
	return us[:]
}

func us(d time.Duration) float64 { return float64(d) / float64(time.Microsecond) }

func asHooks(hooks []hook) (all []redis.Hook) {
	for _, h := range hooks {
		all = append(all, h)
	}
	return all
}

// Print writes the tables for a terminal.
func (r *Report) Print(w io.Writer) {
	for i := range r.Tables {
		r.Tables[i].Print(w)
	}
}

// Markdown is the section of the document. made says when, of what and on what.
func (r *Report) Markdown(made string) string {
	text := "Measured with `go run ./bench/cmd/store -docs`: " + made + ".\n\n"
	for i := range r.Tables {
		text += r.Tables[i].Markdown(why)
	}
	return text + remarks
}
