package sim

import (
	"math"
	"testing"
	"time"

	"github.com/hybridlimit/hybrid"
)

func arrivalsOf(e Experiment) (all []arrival) {
	t := newTraffic(e.withDefaults(), e.withDefaults().population())
	for a, ok := t.next(); ok; a, ok = t.next() {
		all = append(all, a)
	}
	return all
}

// Every process offers its rate, at ascending times.
func TestArrivals(t *testing.T) {
	for _, a := range []Arrivals{Poisson, {Batch: 20}, {On: time.Second, Off: 4 * time.Second}, {On: 3 * time.Millisecond, Off: 7 * time.Second}} {
		e := Experiment{Rate: 200, Arrivals: a, Warm: time.Minute, Span: 10 * time.Minute, Seed: 1}
		all := arrivalsOf(e)
		want, spread := 200*660.0, math.Sqrt(200*660*float64(max(a.Batch, 1)))
		if got := float64(len(all)); math.Abs(got-want) > 5*spread {
			t.Errorf("%v: %v arrivals, want %v", &a, got, want)
		}
		for i := 1; i < len(all); i++ {
			if all[i].at <= all[i-1].at {
				t.Fatalf("%v: %v after %v", &a, all[i].at, all[i-1].at)
			}
			if a.On > 0 && all[i].at%(a.On+a.Off) > a.On+1 {
				t.Fatalf("%v: an arrival in a pause, at %v", &a, all[i].at)
			}
		}
	}
}

// Scenes are played in turn, each with its own load; nobody asks in a quiet warm-up.
func TestScenes(t *testing.T) {
	e := Experiment{Limit: hybrid.PerSecond(100), Quiet: true, Warm: 10 * time.Second, Span: 30 * time.Second,
		Scenes: Scenes{{For: 8 * time.Second, Load: 1, Aside: true}, {For: 2 * time.Second, Rate: 1000, Place: OneNode}}}
	counts := map[bool]int{}
	for _, a := range arrivalsOf(e) {
		if a.at < e.Warm {
			t.Fatalf("an arrival at %v", a.at)
		}
		if loud := (a.at-e.Warm)%(10*time.Second) >= 8*time.Second; loud == a.stretch.aside || loud != (a.stretch.place == OneNode) {
			t.Fatalf("at %v: %+v", a.at, a.stretch)
		}
		counts[a.stretch.aside]++
	}
	if math.Abs(float64(counts[true])-2400) > 300 || math.Abs(float64(counts[false])-6000) > 500 {
		t.Errorf("%v arrivals, want 2400 aside and 6000", counts)
	}
}

// The warm-up may begin with a silence.
func TestStill(t *testing.T) {
	e := Experiment{Rate: 100, Still: 20 * time.Second, Warm: 30 * time.Second, Span: 10 * time.Second, Seed: 1}
	measured, warm := 0, 0
	for _, a := range arrivalsOf(e) {
		switch {
		case a.at < e.Still:
			t.Fatalf("an arrival at %v", a.at)
		case a.stretch.window == 0 && a.at >= e.Warm:
			measured++
		case a.stretch.window < 0 && a.at < e.Warm:
			warm++
		}
	}
	if math.Abs(float64(warm)-1000) > 150 || math.Abs(float64(measured)-1000) > 150 {
		t.Errorf("%d arrivals of the warm-up and %d measured ones, want 1000 each", warm, measured)
	}
	if e.Still = e.Warm + 1; e.Validate() == nil {
		t.Error("a silence longer than the warm-up was taken")
	}
}

// A scene is judged in windows of one fill time.
func TestWindows(t *testing.T) {
	e := Experiment{Limit: hybrid.PerMinute(10), Load: 1, Span: 200 * time.Second}.withDefaults()
	var got []time.Duration
	for _, s := range e.stretches()[1:] {
		got = append(got, s.to-s.from)
	}
	if len(got) != 3 || got[0] != time.Minute || got[2] != 80*time.Second {
		t.Errorf("windows %v", got)
	}
}

// A sample of the keys stands for all: the strata's weighted requests are those of
// all keys, and the first key keeps its own.
func TestSample(t *testing.T) {
	e := Experiment{Rate: 10_000, Keys: 100_000, Skew: 0.99, Sample: 50, Warm: 1, Span: 200 * time.Second, Seed: 3}.withDefaults()
	keys := e.population()
	if keys.count > 20_000 || len(keys.strata) != 17 {
		t.Fatalf("%d keys in %d strata", keys.count, len(keys.strata))
	}
	perStratum := make([]float64, len(keys.strata))
	traffic := newTraffic(e, keys)
	for a, ok := traffic.next(); ok; a, ok = traffic.next() {
		j := keys.stratumOf(a.key)
		perStratum[j] += keys.strata[j].weight
	}
	all := 0.0
	for _, n := range perStratum {
		all += n
	}
	if want := 10_000 * 200.0; math.Abs(all/want-1) > 0.05 {
		t.Errorf("%.0f requests, want %.0f", all, want)
	}
	if share, want := perStratum[0]/all, hottest(e.Keys, e.Skew); math.Abs(share/want-1) > 0.05 {
		t.Errorf("the first key has %.4f of them, want %.4f", share, want)
	}
}

// hottest is the part of all requests that are for the most popular of n keys.
func hottest(n int, skew float64) float64 {
	sum := 0.0
	for k := n; k >= 1; k-- { // the small ones first, for the sake of rounding
		sum += math.Pow(float64(k), -skew)
	}
	return 1 / sum
}

// A request finds its node by the rule.
func TestPlaces(t *testing.T) {
	nodes := []int{2, 3, 5, 7, 11}
	tokens := map[int]int64{2: 5, 3: 1, 5: 1, 7: 9, 11: 4}
	for _, c := range []struct {
		place Place
		most  float64 // share of the node that is asked most
		nodes int
	}{
		{Uniform, 0.2, 5},
		{OneNode, 1, 1},
		{Hopping, 0.92, 5},
		{Least, 0.5, 2},
		{ZipfNodes(1), 60.0 / 137, 5},
	} {
		p := &placer{rng: Experiment{}.random("test"), tokens: func(node int, _ string) int64 { return tokens[node] }}
		counts, most := map[int]int{}, 0
		for range 20_000 {
			node := p.choose(c.place, nodes, time.Second, "k")
			counts[node]++
			most = max(most, counts[node])
		}
		if got := float64(most) / 20_000; math.Abs(got-c.most) > 0.02 || len(counts) != c.nodes {
			t.Errorf("%v: %v", &c.place, counts)
		}
	}
}

// Values of flags are read as they are written, and nonsense is not.
func TestFlagValues(t *testing.T) {
	for _, c := range []struct {
		value interface {
			Set(string) error
			String() string
		}
		good, bad []string
	}{
		{new(Trip), []string{"600µs", "exp:3ms:15ms", "uniform:1ms:5ms"}, []string{"", "3", "exp:3ms", "uniform:5ms:1ms", "0s"}},
		{new(Arrivals), []string{"poisson", "batch:50", "onoff:1s:9s"}, []string{"", "batch:0", "onoff:1s", "onoff:0s:1s"}},
		{new(Place), []string{"uniform", "one", "hopping", "least", "zipf:0.99"}, []string{"", "zipf", "zipf:-1", "zipf:NaN"}},
		{new(Scenes), []string{"2m0s 0.5x uniform aside, 1m0s 3x one", "1s 50/s least", ""}, []string{"2m", "2m 1 uniform x", "0s 1x one", "1s NaNx one"}},
		{new(Faults), []string{"crash:3@1s,pause:0@2s+5s,wipe@3s+1s", ""}, []string{"crash@1s", "wipe@3s", "wipe:1@3s+1s", "nothing@1s", "cut:1@x"}},
		{new(Refunds), []string{"0.2:3s", "1:1ms", ""}, []string{"0.2", "0:1s", "1.5:1s", "NaN:1s", "0.2:0s", "0.2:2h", "0.2:1s:1"}},
		{new(Charges), []string{"0.02:3s:1.5", ""}, []string{"0.02:3s", "0.02:3s:0", "0.02:3s:NaN", "0.02:3s:101", "2:3s:1"}},
		{new(Store), []string{"memory", "mini"}, []string{"redis"}},
		{limitValue{new(hybrid.Limit)}, []string{"1000/min", "5/s:20", "window:100/20s", "7/d"}, []string{"", "0/s", "5", "5/x", "window:5/s:3", "5/s:0"}},
		{accuracyValue{new(hybrid.Accuracy)}, []string{"balanced", "strict", "exact", "within:0.05:0.1"}, []string{"", "within:2:0", "within:0.1"}},
		{policyValue{new(hybrid.FailurePolicy)}, []string{"local", "open", "closed"}, []string{""}},
	} {
		for _, text := range c.good {
			if err := c.value.Set(text); err != nil {
				t.Errorf("%T: %q: %v", c.value, text, err)
			} else if got := c.value.String(); got != text {
				t.Errorf("%T: %q is written %q", c.value, text, got)
			}
		}
		for _, text := range c.bad {
			if c.value.Set(text) == nil {
				t.Errorf("%T: %q was read", c.value, text)
			}
		}
	}
}
