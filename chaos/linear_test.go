package chaos

import (
	"context"
	"flag"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"

	"github.com/hybridlimit/hybrid"
	"github.com/hybridlimit/hybrid/exact"
	"github.com/hybridlimit/hybrid/internal/redistest"
)

var sessionsFlag = flag.Int("linear.sessions", 40, "how many histories of each kind are recorded and checked")

// Whatever nodes with Exact and clients of the store do at once to one account,
// and whatever happens to the server and the connections meanwhile: their answers
// are those of one account that serves them one after the other.
func TestTheExactPathIsLinearizable(t *testing.T) {
	// Nothing is refilled while anybody looks.
	bucket := exact.Per(60, 10*365*24*time.Hour)
	for _, c := range []linearCase{
		{name: "bucket, nothing fails", limit: bucket, policy: hybrid.FailClosed},
		{name: "bucket, FailClosed", limit: bucket, policy: hybrid.FailClosed, faults: 3},
		{name: "bucket, FailLocal", limit: bucket, policy: hybrid.FailLocal, faults: 2},
		{name: "window, nothing fails", limit: exact.Window(60, edgeEvery), policy: hybrid.FailClosed},
		{name: "window, FailClosed", limit: exact.Window(60, edgeEvery), policy: hybrid.FailClosed, faults: 3},
		{name: "charges, refunds and resets", limit: bucket, policy: hybrid.FailClosed, adjusts: true},
		{name: "the same, with faults", limit: bucket, policy: hybrid.FailClosed, faults: 2, adjusts: true},
	} {
		t.Run(c.name, func(t *testing.T) {
			if c.limit.Windowed() {
				t.Parallel() // they wait for the ends of windows, most of the time
			}
			c.run(t)
		})
	}
}

const edgeEvery = 400 * time.Millisecond

// linearCase is a kind of histories.
type linearCase struct {
	name    string
	limit   exact.Limit
	policy  hybrid.FailurePolicy
	faults  int // per history
	adjusts bool
}

// linearSums is what was seen, so that a test that saw nothing fails.
type linearSums struct {
	ops, admitted, denied, doubts, memo, skipped, spoilt int
}

func (c linearCase) run(t *testing.T) {
	timeout := 20 * time.Millisecond
	if c.faults == 0 {
		timeout = 2 * time.Second // a machine that stands still is no fault
	}
	w := newLinearWorld(t, timeout)
	limiters := w.limiters("api", c.limit, c.policy)
	var sums linearSums
	for i := range c.sessions() {
		awaitUp(w.down)
		s := &session{linearWorld: w, limiter: "api", key: fmt.Sprint("key", i), limit: c.limit, limiters: limiters,
			calls: 10, pause: 3 * time.Millisecond, faulty: c.faults > 0, adjusts: c.adjusts, seed: *seedFlag<<16 + uint64(i)}
		if c.limit.Windowed() {
			s.calls, s.pause = 20, 10*time.Millisecond
			sleepUntilEdge(-60 * time.Millisecond)
		}
		told := c.disturb(s, func(h history) { c.judge(t, s, h, &sums) })
		if t.Failed() {
			t.Fatalf("seed %d, history %d; faults: %s\nthe log of the server ends:\n%s", *seedFlag, i, told, w.server.LogTail(20))
		}
	}
	c.expect(t, sums)
}

// sessions is how many histories are recorded. Those of windows take longest.
func (c linearCase) sessions() int {
	n := *sessionsFlag
	if brief() {
		n = (n + 3) / 4
	}
	if c.limit.Windowed() {
		n = (n + 3) / 4
	}
	return n
}

// disturb records a history while faults happen, and has it judged when all is
// well again.
func (c linearCase) disturb(s *session, judge func(history)) (told string) {
	var faults sync.WaitGroup
	var log strings.Builder
	faults.Go(func() {
		rng := rand.New(rand.NewPCG(s.seed, 99))
		for range c.faults {
			time.Sleep(time.Duration(rng.Float64() * float64(s.pause) * float64(s.calls) / 2 / float64(c.faults)))
			f := linearFaults[rng.IntN(len(linearFaults))]
			fmt.Fprintf(&log, "%v %s; ", s.since().Round(time.Microsecond), f.name)
			f.happen(s.linearWorld, rng)
		}
	})
	h := s.record()
	faults.Wait()
	h.ops = append(h.ops, s.edges(h)...)
	judge(h)
	return log.String()
}

func (c linearCase) judge(t *testing.T, s *session, h history, sums *linearSums) {
	if got := h.linearizable(); got != porcupine.Ok {
		t.Errorf("%s\n%v", got, h)
		return
	}
	sums.ops += len(h.ops)
	sums.admitted += h.count(admitted)
	sums.denied += h.count(denied)
	sums.doubts += h.count(inDoubt)
	sums.skipped += s.memo
	for _, o := range h.ops {
		if o.fromMemory() {
			sums.memo++
		}
	}
	if bad, ok := h.spoil(); ok && !c.limit.Windowed() && !c.adjusts {
		sums.spoilt++
		if got := bad.linearizable(); got != porcupine.Illegal {
			t.Errorf("one admission too many was not seen: %s\n%v", got, bad)
		}
	}
}

// expect fails a case in which nothing happened.
func (c linearCase) expect(t *testing.T, sums linearSums) {
	t.Logf("%+v", sums)
	plain := !c.limit.Windowed() && !c.adjusts
	if sums.admitted == 0 || sums.denied == 0 || (sums.doubts > 0) != (c.faults > 0) {
		t.Errorf("too little happened: %+v", sums)
	}
	if plain && (sums.memo == 0 || sums.skipped > 0) {
		t.Errorf("denials from memory were not checked: %+v", sums)
	}
	if plain && c.faults == 0 && sums.spoilt == 0 {
		t.Error("no history used its account up")
	}
}

// spoil turns a denial into an admission for which there is certainly no room.
func (h history) spoil() (bad history, ok bool) {
	var sum int64
	last := -1
	for i, o := range h.ops {
		switch o.known {
		case inDoubt:
			return h, false
		case admitted:
			sum += o.n
		case denied:
			last = i
		}
	}
	if last < 0 || sum+h.ops[last].n <= h.tokens {
		return h, false
	}
	bad = history{key: h.key, tokens: h.tokens, ops: append([]op(nil), h.ops...)}
	bad.ops[last].known, bad.ops[last].used = admitted, unsaid
	return bad, true
}

// edges are the ends of windows while a history was recorded. The server's
// clock is the test's, read a moment earlier or later.
func (s *session) edges(h history) (edges []op) {
	if !s.limit.Windowed() || len(h.ops) == 0 {
		return nil
	}
	const around = 2 * time.Millisecond
	first, last := h.ops[0].from, h.ops[0].to
	for _, o := range h.ops {
		first, last = min(first, o.from), max(last, o.to)
	}
	for at := s.began.Truncate(edgeEvery); at.Sub(s.began) < last+around; at = at.Add(edgeEvery) {
		if since := at.Sub(s.began); since > first-around {
			edges = append(edges, op{client: 2*linearNodes + linearDirect, verb: edge, from: since - around, to: since + around, used: unsaid, by: "the clock"})
		}
	}
	return edges
}

// sleepUntilEdge sleeps until so long after the next edge but one.
func sleepUntilEdge(after time.Duration) {
	time.Sleep(time.Until(time.Now().Truncate(edgeEvery).Add(2*edgeEvery + after)))
}

// down reports whether any node holds the store for down.
func (w *linearWorld) down() bool {
	return slices.ContainsFunc(w.nodes, func(n *hybrid.Node) bool { return n.Stats().StoreDown })
}

// linearFaults are over in a moment.
var linearFaults = []struct {
	name   string
	happen func(*linearWorld, *rand.Rand)
}{
	{"requests cut off", func(w *linearWorld, rng *rand.Rand) { w.proxy(rng).CutBefore(1, "eval") }},
	{"replies cut off", func(w *linearWorld, rng *rand.Rand) { w.proxy(rng).CutAfter(1+rng.IntN(3), "eval") }},
	{"a reply swallowed", func(w *linearWorld, rng *rand.Rand) { w.proxy(rng).Swallow(1, "eval") }},
	{"a reply torn", func(w *linearWorld, rng *rand.Rand) { w.proxy(rng).Tear(1, "eval") }},
	{"connections reset", func(w *linearWorld, rng *rand.Rand) { w.proxy(rng).Reset() }},
	{"scripts flushed", func(w *linearWorld, _ *rand.Rand) {
		if err := w.admin.ScriptFlush(context.Background()).Err(); err != nil {
			w.t.Error(err)
		}
	}},
	{"stopped", func(w *linearWorld, rng *rand.Rand) {
		if err := w.server.Stop(); err != nil {
			w.t.Error(err)
		}
		time.Sleep(time.Duration(5+rng.IntN(40)) * time.Millisecond)
		if err := w.server.Continue(); err != nil {
			w.t.Error(err)
		}
	}},
}

func (w *linearWorld) proxy(rng *rand.Rand) *redistest.Proxy {
	return w.proxies[rng.IntN(len(w.proxies))]
}
