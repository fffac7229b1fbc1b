package service

import (
	"bytes"
	"context"
	"encoding/xml"
	"errors"
	"io"
	"math"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"
)

func smallPlan() Plan {
	return Plan{
		Nodes: 3, Rate: 2000, Keys: 1000, Zipf: 0.99, Limit: 1000, Period: time.Minute, Seed: 1,
		Settling: 50 * time.Millisecond, Measured: 250 * time.Millisecond, Profiled: 200 * time.Millisecond,
	}
}

// A schedule is a Poisson stream of its rate, over all nodes, with its witnesses, and the
// same each time.
func TestTheSchedule(t *testing.T) {
	p := smallPlan()
	p.Measured = 60 * time.Second
	all, again := p.schedule(), p.schedule()
	want := float64(p.Rate) * p.end().Seconds()
	var asked, watched float64
	var squares float64
	nodes := make(map[uint8]int)
	for i := range all {
		if all[i] != again[i] {
			t.Fatalf("request %d differs the second time", i)
		}
		if all[i].node == witness {
			watched++
			continue
		}
		asked++
		nodes[all[i].node]++
	}
	for i := 1; i < len(all); i++ {
		gap := float64(all[i].due - all[i-1].due)
		if gap < 0 {
			t.Fatal("arrivals are not in order")
		}
		squares += gap * gap
	}
	if math.Abs(asked-want) > 6*math.Sqrt(want) || math.Abs(watched-want/witnesses) > 6*math.Sqrt(want/witnesses) {
		t.Errorf("%.0f requests and %.0f witnesses, want %.0f and %.0f", asked, watched, want, want/witnesses)
	}
	mean := float64(p.end()) / float64(len(all))
	if ratio := squares / float64(len(all)) / (mean * mean); ratio < 1.9 || ratio > 2.1 { // 2 for exponential gaps
		t.Errorf("the mean square of the gaps is %.2f times the squared mean", ratio)
	}
	if len(nodes) != p.Nodes {
		t.Errorf("requests at %d nodes, want %d", len(nodes), p.Nodes)
	}
}

// The load grows during the first half of the warm-up, and is whole from then on.
func TestTheLoadGrows(t *testing.T) {
	p := smallPlan()
	p.Warmup, p.Measured = 20*time.Second, 10*time.Second
	perSecond := make([]float64, int(p.end().Seconds())+1)
	for _, r := range p.schedule() {
		perSecond[r.due/int64(time.Second)]++
	}
	full := float64(p.Rate) * (1 + 1.0/witnesses)
	for second, want := range map[int]float64{0: 0.05 * full, 4: 0.45 * full, 9: 0.95 * full, 10: full, 25: full} {
		if got := perSecond[second]; math.Abs(got-want) > 6*math.Sqrt(want) {
			t.Errorf("second %d: %.0f arrivals, want %.0f", second, got, want)
		}
	}
}

// What counts is what was due in the measured part: from the call for the limiter, from
// when it was due for the caller.
func TestLatencies(t *testing.T) {
	p := smallPlan()
	p.Warmup = time.Second
	from, until := int64(p.from()), int64(p.until())
	ms := int64(time.Millisecond)
	l := p.measure([]request{
		{due: from - 1, began: from, took: 500 * ms},
		{due: from, began: from + 2*ms, took: ms},
		{due: from + ms, began: from + 5*ms, took: 3 * ms, answer: answer{path: 1}},
		{due: from + ms, began: from + 5*ms, took: 7 * ms, node: witness},
		{due: until - 1, began: 0}, // never made
		{due: until, began: until, took: 500 * ms},
	}, 2)
	for _, c := range []struct {
		name  string
		l     latency
		count int64
		most  time.Duration
	}{
		{"added", l.added, 2, 3 * time.Millisecond},
		{"seen", l.seen, 2, 7 * time.Millisecond},
		{"path 0", l.paths[0], 1, time.Millisecond},
		{"path 1", l.paths[1], 1, 3 * time.Millisecond},
		{"witness", l.beside, 1, 7 * time.Millisecond},
	} {
		got := c.l.at(100)
		if c.l.count() != c.count || math.Abs(float64(got-c.most)) > 0.001*float64(c.most) {
			t.Errorf("%s: %d times up to %v, want %d up to %v", c.name, c.l.count(), got, c.count, c.most)
		}
	}
}

func TestPercentilesOfADistribution(t *testing.T) {
	l := newLatency()
	for i := range int64(10_000) {
		l.add((i + 1) * int64(time.Microsecond))
	}
	for q, want := range map[float64]time.Duration{
		50: 5 * time.Millisecond, 90: 9 * time.Millisecond, 99: 9900 * time.Microsecond, 99.9: 9990 * time.Microsecond, 100: 10 * time.Millisecond,
	} {
		if got := l.at(q); math.Abs(float64(got-want)) > 0.001*float64(want) {
			t.Errorf("p%v is %v, want %v", q, got, want)
		}
	}
	if got := newLatency().at(99); got != 0 {
		t.Errorf("of nothing: %v", got)
	}
}

// Over-admission is found where it is, and what was never asked of the limiter is not
// held against it.
func TestTheJudge(t *testing.T) {
	p := smallPlan()
	p.Limit = 10
	key := func(key int32, n int, r request) (all []request) {
		for i := range n {
			r.key, r.began, r.allowed = key, int64(i+1), true
			all = append(all, r)
		}
		return all
	}
	for _, c := range []struct {
		name     string
		requests []request
		broken   int32
	}{
		{"at the bound", append(key(1, 11, request{}), key(2, 11, request{})...), 0},
		{"one beyond", append(key(1, 11, request{}), key(2, 12, request{})...), 2},
		{"a call that took a refill", key(1, 12, request{took: int64(6 * time.Second)}), 0},
		{"the failure policy", key(1, 30, request{answer: answer{path: 4}}), 0},
		{"the witness", key(1, 30, request{node: witness}), 0},
	} {
		err := p.judge(c.requests, 0.1, 4).err()
		if (err != nil) != (c.broken != 0) || err != nil && !strings.Contains(err.Error(), "user:2") {
			t.Errorf("%s: %v", c.name, err)
		}
	}
}

func TestInfoIsRead(t *testing.T) {
	got := readInfo("# Server\r\nredis_version:7.0.15\r\nused_memory:1024\r\nused_cpu_sys:1.5\r\nused_cpu_user:2.25\r\nused_cpu_sys_children:9\r\n" +
		"cmdstat_evalsha:calls=10,usec=50,usec_per_call=5.00\r\ncmdstat_eval:calls=1,usec=7,usec_per_call=7.00\r\n")
	want := told{cpu: 3750 * time.Millisecond, scripts: 11, scripting: 57 * time.Microsecond, memory: 1024, version: "7.0.15"}
	if got != want {
		t.Errorf("got %+v, want %+v", got, want)
	}
}

func needRedis(t *testing.T) {
	t.Helper()
	if _, err := exec.LookPath("redis-server"); err == nil {
		return
	}
	if os.Getenv("HYBRID_REQUIRE_REDIS") == "1" {
		t.Fatal("redis-server is not on PATH, and HYBRID_REQUIRE_REDIS=1")
	}
	t.Skip("redis-server is not on PATH: install Redis 6.2 or later (apt install redis, brew install redis) to run this test")
}

// The whole of it in small: every subject, profiles, text and pictures.
func TestTheWholeServiceInSmall(t *testing.T) {
	needRedis(t)
	var said bytes.Buffer
	rep, err := Measure(t.Context(), Settings{Plan: smallPlan(), CompareRate: 500}, &said)
	if err != nil {
		t.Fatalf("%v\n%s", err, said.String())
	}
	if len(rep.Results) != 6 {
		t.Fatalf("%d results", len(rep.Results))
	}
	for i, r := range rep.Results {
		offered := float64(r.Plan.Rate) * r.Plan.Measured.Seconds()
		if n := float64(r.latencies.added.count()); n < offered/2 || n > 2*offered {
			t.Errorf("%s: %.0f requests measured, want about %.0f", r.Name, n, offered)
		}
		if asks := i < 4; asks != (r.redis.scripts > 0) || asks != (r.books.operations > 0) {
			t.Errorf("%s: %d scripts, %d operations", r.Name, r.redis.scripts, r.books.operations)
		}
		if r.own.cpu <= 0 || r.requests == 0 || r.elapsed <= 0 {
			t.Errorf("%s: %v of the processors for %d requests in %v", r.Name, r.own.cpu, r.requests, r.elapsed)
		}
	}
	prof, err := rep.Profiles()
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	if err := rep.Print(&out, prof); err != nil {
		t.Fatal(err)
	}
	t.Log(out.String())
	text := rep.Markdown("made by a test", prof)
	for _, want := range []string{"added by the call, p99.9", "Redis operations per request", "redis_rate", "control", "made by a test", "service-cpu.svg"} {
		if !strings.Contains(text, want) {
			t.Errorf("the document lacks %q", want)
		}
	}
	picture, err := rep.Plot()
	if err != nil {
		t.Fatal(err)
	}
	if err := wellFormed(picture); err != nil || !bytes.Contains(picture, []byte("redis_rate")) {
		t.Errorf("the picture: %v", err)
	}
}

func wellFormed(svg []byte) error {
	d := xml.NewDecoder(bytes.NewReader(svg))
	for {
		if _, err := d.Token(); errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return err
		}
	}
}

func TestTheSearchFindsWhatIsCarried(t *testing.T) {
	for _, most := range []int{700, 1000, 17_300, 49_999, 50_000, 90_000} {
		got, err := highest(50_000, func(rate int) (bool, error) { return rate <= most, nil })
		if step := 50_000 / 64; err != nil || got > most || got < min(most, 50_000)-step {
			t.Errorf("%d/s are carried, found %d, %v", most, got, err)
		}
	}
	broken := errors.New("broken")
	if _, err := highest(50_000, func(int) (bool, error) { return false, broken }); !errors.Is(err, broken) {
		t.Errorf("got %v", err)
	}
}

// A subject that can serve 4000 calls a second carries 100, and 20,000 pile up.
func TestWhatPilesUpIsNotCarried(t *testing.T) {
	needRedis(t)
	p := smallPlan()
	p.Measured = 500 * time.Millisecond
	slow := starter{name: "slow", policy: -1, start: func(string, Plan) (subject, error) { return slowOne{make(chan struct{}, 4)}, nil }}
	p.Rate = 20_000
	if ok, err := slow.carries(t.Context(), p); err != nil || ok {
		t.Errorf("%d/s: %v, %v", p.Rate, ok, err)
	}
	p.Rate = 100
	for range 5 { // another program may hold the processors for as long as a caller may wait
		if ok, err := slow.carries(t.Context(), p); err != nil || ok {
			if err != nil {
				t.Error(err)
			}
			return
		}
	}
	t.Errorf("%d/s are not carried", p.Rate)
}

// slowOne serves as many calls at a time as turn has room for, each for a millisecond.
type slowOne struct{ turn chan struct{} }

func (s slowOne) allow(context.Context, int, string) (answer, error) {
	s.turn <- struct{}{}
	time.Sleep(time.Millisecond)
	<-s.turn
	return answer{allowed: true}, nil
}

func (slowOne) paths() []string { return []string{"slow"} }
func (slowOne) over() float64   { return 0 }
func (slowOne) books() books    { return books{} }
func (slowOne) stop()           {}
