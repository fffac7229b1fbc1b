package chaos

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/hybridlimit/hybrid"
	"github.com/hybridlimit/hybrid/exact"
	"github.com/hybridlimit/hybrid/internal/redistest"
)

// slowly is a limit that refills nothing in a test, so that what the store says
// is used is what was used.
func slowly(n int64) hybrid.Limit { return hybrid.Per(n, time.Duration(n)*1000*time.Hour) }

// takesLong skips a test where only a selection is run.
func takesLong(t *testing.T) {
	if brief() {
		t.Skip("not in a brief selection")
	}
}

// topologyRun is a fleet under load on more than one server.
type topologyRun struct {
	t     testing.TB
	fleet *fleet
	out   outcome
	keep  func() // ends the load and keeps what was recorded

	unproved []string // for which the machine left too few requests
}

// proved plays a run, and once more if the machine excused so much of it that it
// proves nothing.
func proved(t *testing.T, play func(testing.TB) *topologyRun) {
	t.Helper()
	unproved := playOnce(t, play)
	if len(unproved) > 0 && !t.Failed() {
		t.Logf("this is played again: %s", strings.Join(unproved, "; "))
		unproved = playOnce(t, play)
	}
	for _, v := range unproved {
		t.Error(v)
	}
}

// playOnce plays a run, and lets all go that it has made.
func playOnce(t *testing.T, play func(testing.TB) *topologyRun) (unproved []string) {
	t.Helper()
	round := &roundTB{TB: t}
	defer round.end()
	return play(round).unproved
}

// runOn starts a fleet with this load.
func runOn(t testing.TB, name string, l load, limit hybrid.Limit, connect func(node int) redis.UniversalClient) *topologyRun {
	t.Helper()
	clients, other := warmed(t, connect), redistest.Start(t) // which no fault befalls
	began := time.Now()
	setup := usualFleet(began, func(node int) redis.UniversalClient { return clients[node] })
	setup.limit = limit
	r := &topologyRun{t: t}
	asFleet(func() { r.fleet = setup.start(t) })
	r.out = outcome{fault: name, seed: l.seed, limit: limit, accuracy: setup.accuracy, nodes: setup.nodes, timeout: defaultTimeout,
		tick: defaultTick, lanes: lanes(t, clients[0]),
		expect:  expectation{down: never, byPolicy: 1}, // a part that fails is no reason not to wait for the others
		secrets: []string{secretMark, "127.0.0.1"}}
	stop := make(chan struct{})
	var answers func() []answer
	asFleet(func() { answers = l.drive(r.fleet, began, stop) })
	controls, samples := control(defaultTimeout, 4, began, stop), watch(r.fleet, began, stop)
	others := pings(patient(t, other.Addr, "", ""), began, stop)
	r.keep = func() {
		r.out.stopped = r.now()
		close(stop)
		r.out.answers, r.out.controls, r.out.samples, r.out.others = answers(), controls(), samples(), others()
		r.fleet.awaitUp() // a busy machine may have stopped it just now
		r.out.events, r.out.logs, r.out.stats = r.fleet.heard(), r.fleet.logged(), r.fleet.stats()
		r.out.sort()
	}
	return r
}

// warmed makes the clients of a fleet and lets them connect: to find out who is the
// primary, or what a cluster looks like, takes longer than a call may.
func warmed(t testing.TB, connect func(node int) redis.UniversalClient) (clients []redis.UniversalClient) {
	t.Helper()
	ctx := context.Background()
	ping := func(ctx context.Context, rdb *redis.Client) error { return rdb.Ping(ctx).Err() }
	for node := range usualFleet(time.Time{}, nil).nodes {
		rdb := connect(node)
		clients = append(clients, rdb)
		var wg sync.WaitGroup
		for range 8 {
			wg.Go(func() {
				switch rdb := rdb.(type) {
				case *redis.ClusterClient:
					_ = rdb.ForEachMaster(ctx, ping)
				case *redis.Ring:
					_ = rdb.ForEachShard(ctx, ping)
				default:
					_ = rdb.Ping(ctx)
				}
			})
		}
		wg.Wait()
	}
	return clients
}

// collect ends the load once no node holds the store for down, and keeps what was recorded.
func (r *topologyRun) collect() {
	r.fleet.awaitUp()
	r.keep()
}

// leave closes the nodes, so that slices go back. What cannot go back is lent, and
// counts as used.
func (r *topologyRun) leave() {
	r.t.Helper()
	r.fleet.awaitUp()
	for _, n := range r.fleet.nodes {
		if err := n.Close(); err != nil {
			r.t.Log(err)
		}
	}
}

// now is the time of the run.
func (r *topologyRun) now() time.Duration { return time.Since(r.fleet.nodes[0].began) }

// everywhere are the promises that hold whatever a part of the store does.
var everywhere = []check{
	{"calls are punctual", lateCalls, false},
	{"no error reaches a caller", failedCalls, true},
	{"the policy decides as it says", ownWords, true},
	{"goroutines are flat", lastingGoroutines, true},
	{"changes of state are told once", untoldChanges, true},
	{"logs keep secrets", toldSecrets, true},
}

// judge checks the promises and tells the run.
func (r *topologyRun) judge() {
	r.t.Helper()
	broken := false
	for _, c := range everywhere {
		var list []string
		for _, v := range c.broken(&r.out) {
			list = append(list, c.name+": "+v)
		}
		r.complain(list)
		broken = broken || len(list) > 0
	}
	if broken || *verboseFlag {
		r.t.Log(r.out.report())
	} else {
		r.t.Log(r.out.figures())
	}
}

// complain fails the test with the first of these, if there are any.
func (r *topologyRun) complain(list []string) {
	r.t.Helper()
	for _, v := range list[:min(len(list), 5)] {
		r.t.Errorf("%s (one of %d)", v, len(list))
	}
}

// lanes is into how many parts nodes divide a store; each has calls of its own.
func lanes(t testing.TB, rdb redis.UniversalClient) int {
	t.Helper()
	store, err := exact.New(rdb, nil)
	if err != nil {
		t.Fatal(err)
	}
	return store.Lanes()
}

// goroutinesPerNode is how many a node may need in a fault beyond those of a calm. Each
// lane has two calls under way at most, and the client dials for each.
func (o *outcome) goroutinesPerNode() int { return mostGoroutines + 2*2*o.lanes }

// lastingGoroutines: goroutines are bounded, and as many as before when all is over.
func lastingGoroutines(o *outcome) (bad []string) {
	calm, fault, end := o.peaks()
	if most := calm.goroutines + o.goroutinesPerNode()*o.nodes; fault.goroutines > most {
		bad = append(bad, fmt.Sprintf("%d goroutines, in the calm %d, at most %d expected", fault.goroutines, calm.goroutines, most))
	}
	if most := calm.goroutines + leftGoroutines*o.nodes; end.goroutines > most {
		bad = append(bad, fmt.Sprintf("%d goroutines are left, in the calm %d", end.goroutines, calm.goroutines))
	}
	return bad
}

// byRedis fails the test if answers between two times were by policy, but for moments
// at which the machine stood still, and for accidents.
func (r *topologyRun) byRedis(when string, from, to time.Duration) {
	r.t.Helper()
	s := r.out.shareOf(from, to, func(*answer) bool { return true })
	r.judgeShare(when, s, leastJudged, r.out.mostByAccident(from, to))
}

// accountName is what the account of a key is called in Redis.
func accountName(limiter, key string) string {
	return fmt.Sprintf("hybrid:{}a1:%d:%s:%s", len(limiter), limiter, key)
}

// usage is what each account has used, by its name.
type usage map[string]float64

// usedOn reads all accounts of some servers.
func usedOn(t testing.TB, servers ...*redistest.Server) usage {
	t.Helper()
	all := usage{}
	for _, s := range servers {
		rdb := s.Client(t).Conn()
		defer rdb.Close()
		_ = rdb.ReadOnly(context.Background()) // for replicas in a cluster; others refuse it
		for iter := rdb.Scan(context.Background(), 0, "hybrid:{}a1:*", 1000).Iterator(); iter.Next(context.Background()); {
			all[iter.Val()] = usedOf(t, rdb, iter.Val())
		}
	}
	return all
}

// usedOf reads an account, which may not be there.
func usedOf(t testing.TB, rdb *redis.Conn, name string) float64 {
	t.Helper()
	state, err := rdb.Get(context.Background(), name).Result()
	if err == redis.Nil {
		return 0
	}
	if err != nil {
		t.Fatal(err)
	}
	text, _, _ := strings.Cut(state, " ")
	used, err := strconv.ParseFloat(text, 64)
	if err != nil {
		t.Fatalf("%s: %q", name, state)
	}
	return used
}

// hotUsed waits until a server knows that so much of the hot key under FailClosed is
// used, for 15 s at most: how fast it goes depends on what else the machine does.
func hotUsed(t testing.TB, s *redistest.Server, least float64) {
	t.Helper()
	rdb := s.Client(t).Conn()
	defer rdb.Close()
	redistest.Eventually(t, "the hot key is used", func() bool {
		return usedOf(t, rdb, accountName(hybrid.FailClosed.String(), hotKey)) >= least
	})
}

// keepsData makes a server write what it does to a file before it acknowledges it,
// which survives the process.
var keepsData = []string{"--appendonly", "yes", "--appendfsync", "no"}

// leftBy starts a server with the data that a dead one has left.
func leftBy(t testing.TB, dead *redistest.Server) usage {
	t.Helper()
	dead.Kill()
	return usedOn(t, redistest.Start(t, append(keepsData, "--dir", dead.Dir)...))
}

// lostOf is what the primary acknowledged and the replica never saw, by account.
func lostOf(primary, replica usage) usage {
	lost := usage{}
	for name, used := range primary {
		lost[name] = used - replica[name]
	}
	return lost
}

func (u usage) sum() (total float64) {
	for _, v := range u {
		total += v
	}
	return total
}
