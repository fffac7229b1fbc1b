package flame

import (
	"bytes"
	"encoding/xml"
	"errors"
	"io"
	"math"
	"strings"
	"testing"

	"github.com/google/pprof/profile"
)

// build makes a profile of stacks, written with the outermost function first. Functions
// joined by "+" are one location: the right one was inlined into the left one.
func build(t *testing.T, stacks map[string]int64) []byte {
	t.Helper()
	p := &profile.Profile{
		SampleType: []*profile.ValueType{{Type: "samples", Unit: "count"}, {Type: "cpu", Unit: "nanoseconds"}},
		PeriodType: &profile.ValueType{Type: "cpu", Unit: "nanoseconds"},
		Period:     10_000_000,
	}
	functions := make(map[string]*profile.Function)
	function := func(name string) *profile.Function {
		if functions[name] == nil {
			f := &profile.Function{ID: uint64(len(functions) + 1), Name: name, SystemName: name}
			functions[name], p.Function = f, append(p.Function, f)
		}
		return functions[name]
	}
	for stack, value := range stacks {
		s := &profile.Sample{Value: []int64{1, value}}
		for place := range strings.SplitSeq(stack, ";") {
			l := &profile.Location{ID: uint64(len(p.Location) + 1)}
			for name := range strings.SplitSeq(place, "+") {
				l.Line = append([]profile.Line{{Function: function(name), Line: 1}}, l.Line...)
			}
			p.Location = append(p.Location, l)
			s.Location = append([]*profile.Location{l}, s.Location...)
		}
		p.Sample = append(p.Sample, s)
	}
	var out bytes.Buffer
	if err := p.Write(&out); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

const syncerPath = "github.com/hybridlimit/hybrid/syncer"

// service is a profile of 100 ns: 60 in the limiter, 10 of them at a mutex, 15 in the
// client, 20 in the runtime, 5 of them at its own lock, 5 elsewhere.
func service(t *testing.T) *Profile {
	t.Helper()
	p, err := Read(build(t, map[string]int64{
		"main.main;" + syncerPath + ".(*Account).Ask":                                                            50,
		"main.main;" + syncerPath + ".(*Account).Ask+sync.(*Mutex).Lock;internal/sync.(*Mutex).lockSlow":         7,
		"main.main;" + syncerPath + ".(*Account).Ask;sync.(*Mutex).Unlock":                                       3,
		"main.main;github.com/redis/go-redis/v9.(*baseClient).process":                                           15,
		"runtime.mcall;runtime.schedule;runtime.findRunnable;runtime.lock2;runtime.futex":                        5,
		"runtime.mcall;runtime.schedule;runtime.findRunnable;runtime.notesleep;runtime.futexsleep;runtime.futex": 15,
		"main.main;example.com/a/b.Tree[go.shape.*example.com/c/d.E[int]].Walk<&>":                               5,
	}), "cpu")
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func TestLocksAreFoundWithTheirHolders(t *testing.T) {
	p := service(t)
	if p.Total() != 100 || p.Unit() != "nanoseconds" {
		t.Errorf("total %d %s", p.Total(), p.Unit())
	}
	want := []Lock{
		{"syncer.(*Account).Ask", "mutex", 10, 0.10},
		{"runtime.findRunnable", "runtime's own", 5, 0.05},
	}
	got := p.Locks()
	if len(got) != len(want) {
		t.Fatalf("got %+v", got)
	}
	for i, w := range want {
		g := got[i]
		if g.Holder != w.Holder || g.Kind != w.Kind || g.Value != w.Value || math.Abs(g.Share-w.Share) > 1e-9 {
			t.Errorf("got %+v, want %+v", g, w)
		}
	}
}

func TestPartsAreOnSomebodysBehalf(t *testing.T) {
	want := map[string]float64{"the limiter": 0.60, "runtime": 0.20, "Redis client": 0.15, "others": 0.05}
	got := service(t).Parts()
	if len(got) != len(want) {
		t.Errorf("got %+v", got)
	}
	for _, p := range got {
		if math.Abs(p.Share-want[p.Name]) > 1e-9 {
			t.Errorf("%s: got %v, want %v", p.Name, p.Share, want[p.Name])
		}
	}
	gc, err := Read(build(t, map[string]int64{
		syncerPath + ".New;runtime.mallocgc;runtime.gcAssistAlloc;runtime.systemstack": 1,
		"runtime.gcBgMarkWorker;runtime.systemstack;runtime.gcDrain":                   1,
	}), "cpu")
	if err != nil {
		t.Fatal(err)
	}
	if got := gc.Parts(); len(got) != 1 || got[0].Name != "garbage collector" {
		t.Errorf("got %+v", got)
	}
}

// rectangle is one function in the picture.
type rectangle struct {
	Title string `xml:"title"`
	Rect  struct {
		X      float64 `xml:"x,attr"`
		Y      float64 `xml:"y,attr"`
		Width  float64 `xml:"width,attr"`
		Height float64 `xml:"height,attr"`
		Fill   string  `xml:"fill,attr"`
	} `xml:"rect"`
	Text string `xml:"text"`
}

func rectangles(t *testing.T, svg string) map[string]rectangle {
	t.Helper()
	var picture struct {
		Groups []rectangle `xml:"g"`
	}
	if err := xml.Unmarshal([]byte(svg), &picture); err != nil {
		t.Fatalf("no XML: %v", err)
	}
	all := make(map[string]rectangle)
	for _, g := range picture.Groups {
		name, _, _ := strings.Cut(g.Title, ": ")
		all[name] = g
	}
	return all
}

func TestTheGraphShowsPartsAsWidths(t *testing.T) {
	svg := service(t).SVG("a <title> & more")
	all := rectangles(t, svg)
	for name, part := range map[string]float64{
		"all": 1, "main.main": 0.80, syncerPath + ".(*Account).Ask": 0.60, "sync.(*Mutex).Lock": 0.07,
		"github.com/redis/go-redis/v9.(*baseClient).process": 0.15, "runtime.findRunnable": 0.20,
		"example.com/a/b.Tree.Walk<&>": 0.05,
	} {
		r, ok := all[name]
		if !ok {
			t.Errorf("%s is not in the picture", name)
			continue
		}
		if math.Abs(r.Rect.Width-part*width) > 0.1 {
			t.Errorf("%s is %.1f wide, want %.1f", name, r.Rect.Width, part*width)
		}
	}
	if got := all[syncerPath+".(*Account).Ask"]; got.Text != "syncer.(*Account).Ask" || got.Rect.Fill != kinds[limiter].color {
		t.Errorf("got %+v", got)
	}
	if strings.Contains(svg, "<script") {
		t.Error("the picture holds a script")
	}
}

// A called function lies below its caller, within its width.
func TestCallsLieWithinTheirCallers(t *testing.T) {
	all := rectangles(t, service(t).SVG("x"))
	caller, call := all["main.main"].Rect, all[syncerPath+".(*Account).Ask"].Rect
	if call.Y != caller.Y+rowHeight || call.X < caller.X-0.1 || call.X+call.Width > caller.X+caller.Width+0.1 {
		t.Errorf("caller %+v, call %+v", caller, call)
	}
}

func TestNamesAreShortened(t *testing.T) {
	for name, want := range map[string]string{
		"main.main":           "main.main",
		"runtime.mallocgc":    "runtime.mallocgc",
		syncerPath + ".New":   "syncer.New",
		"net/http.(*T).Serve": "http.(*T).Serve",
		"github.com/redis/go-redis/v9.(*baseClient).process":                           "go-redis.(*baseClient).process",
		"github.com/puzpuzpuz/xsync/v3.(*MapOf[go.shape.string,go.shape.*a/b.C]).Load": "xsync.(*MapOf).Load",
	} {
		if got := short(name); got != want {
			t.Errorf("%s: got %s, want %s", name, got, want)
		}
	}
}

func TestLongNamesAreCut(t *testing.T) {
	if got := fit("syncer.(*Account).Ask", 70); got != "syncer.(*…" {
		t.Errorf("got %q", got)
	}
	if got := fit("syncer.(*Account).Ask", narrowest-1); got != "" {
		t.Errorf("got %q", got)
	}
}

func TestWhatIsNoProfileIsRefused(t *testing.T) {
	if _, err := Read([]byte("no profile"), "cpu"); err == nil {
		t.Error("text was read as a profile")
	}
	if _, err := Read(build(t, map[string]int64{"main.main": 1}), "delay"); err == nil || errors.Is(err, io.EOF) {
		t.Errorf("a type of values that is not there: %v", err)
	}
}

func TestAnEmptyProfileIsDrawn(t *testing.T) {
	p, err := Read(build(t, nil), "cpu")
	if err != nil {
		t.Fatal(err)
	}
	if all := rectangles(t, p.SVG("nothing")); len(all) != 0 {
		t.Errorf("got %+v", all)
	}
	if got := p.Locks(); len(got) != 0 {
		t.Errorf("got %+v", got)
	}
}
