package chaos

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/hybridlimit/hybrid"
	"github.com/hybridlimit/hybrid/internal/redistest"
)

var soakFlag = flag.Duration("soak.for", 0, "how long TestSoak lasts; 0: not at all")

// One fleet, with every accuracy and every policy, lives through one fault after
// another, in random order, on a server that is never replaced. After each fault
// all promises are judged, and what the fleet admitted is added to the books of
// the whole run; at the end memory, goroutines and connections are what they were
// in its first half.
//
//	go test ./chaos -run TestSoak -v -timeout 0 -soak.for 30m -chaos.seed 1
func TestSoak(t *testing.T) {
	if *soakFlag == 0 {
		t.Skip("it takes long: go test ./chaos -run TestSoak -v -timeout 0 -soak.for 30m")
	}
	s := newSoak(t)
	s.goOn(*soakFlag)
	t.Log(s.summary())
	for _, bad := range s.flat() {
		t.Error(bad)
	}
	t.Logf("%d of %d answers by policy that no fault and no stall explains", s.unasked, s.asked)
	if s.neglectful() {
		t.Errorf("%d of %d answers by policy that no fault and no stall explains, allowed one of a thousand", s.unasked, s.asked)
	}
	if !enoughJudged(s.round-s.stood, s.round) {
		t.Errorf("only %d of %d rounds could be judged wholly: the machine is too busy", s.round-s.stood, s.round)
	}
}

// enoughJudged reports whether a third of the rounds were judged with times: else
// little was proved of them.
func enoughJudged(wholly, rounds int) bool { return wholly > 0 && 3*wholly >= rounds }

// soak is a run that goes on. What it keeps does not grow with its length, but
// for a line of figures per fault.
type soak struct {
	*run
	t      *testing.T
	rng    *rand.Rand
	setup  fleetSetup
	faults []fault
	toxic  toxic // the nodes' way to the server: through this and then through
	proxy  proxied
	groups []group

	start   time.Time
	round   int
	stood   int         // rounds in which the machine was busy
	unasked int         // answers by policy that nothing explains
	asked   int         // answers in all, while no fault explains any
	losses  []time.Time // when the server lost data, lately
	books   soakBooks
	figures []figure // one per round
	minute  minute
	total   minute
}

// group are the nodes of one accuracy. They share accounts.
type group struct {
	accuracy hybrid.Accuracy
	first    int // index of its first node
	nodes    int
}

const nodesPerGroup = 3

func newSoak(t *testing.T) *soak {
	s := &soak{t: t, rng: rand.New(rand.NewPCG(*seedFlag, 0)), faults: soakFaults(), start: time.Now(), books: soakBooks{}}
	s.run = &run{t: t, began: s.start}
	s.server = redistest.Start(t, append(userArgs[:len(userArgs):len(userArgs)], "--lua-time-limit", "5")...)
	s.other = redistest.Start(t)
	s.proxy = byProxy(s.run).(proxied)
	s.toxic = byToxic(&run{t: t, server: &redistest.Server{Addr: s.proxy.Addr}}).(toxic)
	s.route = s.toxic
	s.admin = redis.NewClient(&redis.Options{Addr: s.server.Addr, MaxRetries: -1, DialerRetries: 1, ReadTimeout: 200 * time.Millisecond, PoolSize: 2})
	t.Cleanup(func() { _ = s.admin.Close() })
	s.startFleet()
	s.warmUp()
	return s
}

// soakFaults are all that one server can go through and keep its data in between
// as it should. Those that need a file of their data do not.
func soakFaults() (all []fault) {
	for _, f := range slices.Concat(faults, networkFaults, restarts, refusals) {
		if !slices.Contains(f.args, "--appendonly") && f.load == nil && f.fleet == nil {
			all = append(all, f)
		}
	}
	return all
}

// startFleet starts the groups as one fleet.
func (s *soak) startFleet() {
	s.fleet = &fleet{}
	for i, a := range []hybrid.Accuracy{hybrid.Balanced, hybrid.Strict, hybrid.Exact} {
		s.setup = usualFleet(s.start, s.connect)
		s.setup.nodes, s.setup.accuracy, s.setup.limit = nodesPerGroup, a, hybrid.PerSecond(50)
		s.setup.options = hybrid.Options{Servers: nodesPerGroup, Prefix: fmt.Sprint("soak", i), MaxKeys: 1024}
		s.groups = append(s.groups, group{a, len(s.fleet.nodes), nodesPerGroup})
		asFleet(func() {
			for range nodesPerGroup {
				s.fleet.nodes = append(s.fleet.nodes, s.setup.startNode(s.t, len(s.fleet.nodes)))
			}
		})
	}
}

// warmUp lets all nodes make their connections, and judges nothing: they are far
// more at once than ever again.
func (s *soak) warmUp() {
	round := &roundTB{TB: s.t}
	defer round.end()
	nothing := func(*run) error { return nil }
	s.renew(fault{name: "none", begin: nothing, end: nothing}, round)
	s.phases()
}

// connect makes a node's client, which any of the faults may have a hand in.
func (s *soak) connect(int) redis.UniversalClient {
	opts := &redis.Options{Addr: s.toxic.addr(), Username: user, Password: password, ContextTimeoutEnabled: true} // as recommended
	for _, f := range s.faults {
		if f.client != nil {
			f.client(s.run, opts)
		}
	}
	return redis.NewClient(opts)
}

// goOn lets faults happen in random order, each once before any comes again.
func (s *soak) goOn(length time.Duration) {
	var order []int
	for time.Since(s.start) < length {
		if len(order) == 0 {
			order = s.rng.Perm(len(s.faults))
		}
		s.happen(s.faults[order[0]])
		order = order[1:]
		if s.t.Failed() {
			return
		}
		if time.Since(s.start)-s.minute.from >= time.Minute {
			s.tell()
		}
	}
}

// happen is one round: a calm, a fault and a recovery.
func (s *soak) happen(f fault) {
	round := &roundTB{TB: s.t}
	defer round.end()
	s.round++
	s.renew(f, round)
	s.arrange(f)
	s.phases()
	s.judge()
	s.minute.add(&s.out)
	s.total.add(&s.out)
	s.out = outcome{}
	s.figures = append(s.figures, s.measure())
}

// renew prepares the record of a round. Its times are since its own beginning.
func (s *soak) renew(f fault, round *roundTB) {
	now, number := time.Now(), uint64(s.round)
	s.run.t, s.fault, s.began = round, f, now
	s.fault.load = func(l *load) { l.seed, l.workers = l.seed<<20+number, 4 }
	s.out = outcome{fault: f.name, seed: *seedFlag, limit: s.setup.limit, nodes: len(s.fleet.nodes),
		timeout: defaultTimeout, tick: defaultTick, expect: f.expect, well: f.sparesServer(),
		secrets: []string{secretMark, password, secretHost, "127.0.0.1", portOf(s.toxic.addr())}}
	s.out.lone = 5 // of a thousand answers after the fault; of all rounds together one, see neglectful
	if f.expect.undialable {
		s.out.redial = time.Second // a client that has failed PoolSize times since it last had to, tries once a second
	}
	for _, n := range s.fleet.nodes {
		n.renew(now)
	}
	s.forgive(now, f.expect.losses)
}

// renew forgets what a node told of earlier rounds.
func (n *node) renew(began time.Time) {
	n.mu.Lock()
	n.began, n.events = began, nil
	n.mu.Unlock()
	n.log.mu.Lock()
	n.log.began, n.log.lines = began, nil
	n.log.mu.Unlock()
}

// arrange makes the server and the way to it what the fault needs.
func (s *soak) arrange(f fault) {
	for i := 0; i+1 < len(f.args); i += 2 {
		s.must(s.do("config", "set", strings.TrimPrefix(f.args[i], "--"), f.args[i+1]))
	}
	if f.prepare != nil {
		s.must(f.prepare(s.run))
	}
	s.route = s.toxic
	if f.way != nil {
		if _, ours := f.way(s.run).(proxied); ours {
			s.route = s.proxy
		}
	}
}

// notInSoak are promises that hold for a fleet with one fault in ten seconds: then
// each change of state is logged. Bounds and bursts are judged by group. Of some
// hundred rounds a few meet a stall that neither a timer nor a ping sees: what is
// asked of a store that works is judged for all rounds together.
var notInSoak = []string{"changes of state are told once", "the bound holds", "recovery is no second burst",
	"the policy waits for the fault", "a store that works is asked"}

// neglect adds a round to the answers by policy that no fault and no stall explains.
func (s *soak) neglect(o *outcome) {
	none := o.expect.down == never && o.expect.byPolicy == 0
	later := o.whenWell()
	fallbacks, asked := o.unasked(func(a *answer) bool { return o.isEarly(a) || none && o.isDuring(a) || later(a) })
	s.unasked += len(fallbacks)
	s.asked += asked
}

// neglectful reports whether more than one of a thousand answers is of that kind,
// which is what docs/operations.md alerts on.
func (s *soak) neglectful() bool { return 1000*s.unasked > s.asked }

// judge holds a round to the promises. One in which the machine was busy is judged
// by those that hold whatever it does, and by its longest call.
func (s *soak) judge() {
	busy := s.out.busy()
	if !busy {
		s.neglect(&s.out)
	}
	bad := s.out.broken(func(c check) bool { return !slices.Contains(notInSoak, c.name) && (c.always || !busy) })
	if busy {
		s.stood++
		bad = append(bad, latestCall(&s.out)...)
	}
	for _, g := range s.groups {
		part := s.out.part(g)
		part.expect.losses = len(s.losses)
		bad = append(bad, s.books.enter(part, s.began.Sub(s.start))...)
		broken := brokenBounds(part)
		if !busy {
			broken = append(broken, secondBursts(s.out.part(g))...)
		}
		for _, v := range broken {
			bad = append(bad, fmt.Sprintf("%v: %s", g.accuracy, v))
		}
	}
	if len(bad) == 0 {
		return
	}
	for _, v := range bad {
		s.t.Error(v)
	}
	s.t.Logf("round %d, %v after the start\n%s", s.round, time.Since(s.start).Round(time.Second), s.out.report())
}

// latestCall holds the longest call of a round to twice the latest timer of the
// round: twice for the same reason as grace.
func latestCall(o *outcome) (bad []string) {
	latest := o.worstControl(0, o.stopped)
	for i := range o.answers {
		if a := &o.answers[i]; a.took > o.timeout+slack+2*latest {
			bad = append(bad, fmt.Sprintf("%v took %v, and no timer was later than %v", describe(a), a.took, latest))
		}
	}
	return bad
}

// part is what of a record is a group's.
func (o *outcome) part(g group) *outcome {
	part := *o
	part.accuracy = g.accuracy
	part.answers = slices.DeleteFunc(slices.Clone(o.answers), func(a answer) bool { return a.node < g.first || a.node >= g.first+g.nodes })
	return &part
}

// roundTB lets what a round has made go at its end.
type roundTB struct {
	testing.TB
	cleanups []func()
}

func (r *roundTB) Cleanup(f func()) { r.cleanups = append(r.cleanups, f) }

func (r *roundTB) end() {
	for _, f := range slices.Backward(r.cleanups) {
		f()
	}
}
