package chaos

import (
	"cmp"
	"context"
	"net"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/hybridlimit/hybrid/internal/redistest"
)

// Fleets sign in as a user, so that it can lose its rights.
const (
	user     = "app"
	password = "s3cret-9c41"
)

// userArgs make a server know the user, also after a restart.
var userArgs = []string{"--user", user, "on", ">" + password, "~*", "&*", "+@all", "--loglevel", "notice"}

// fault is one thing that goes wrong, and what may come of it.
type fault struct {
	name    string
	args    []string                   // of the server
	way     func(*run) route           // of the nodes to the server; nil: straight
	client  func(*run, *redis.Options) // changes a node's client; nil: as recommended
	prepare func(*run) error           // before the nodes start; may be nil
	begin   func(*run) error
	end     func(*run) error
	calm    time.Duration     // before the fault; 0: longCalm
	lasts   time.Duration     // 0: shortFault
	load    func(*load)       // changes the usual load; may be nil
	fleet   func(*fleetSetup) // changes the usual fleet; may be nil
	brief   bool              // also in a brief selection, and under the race detector
	expect  expectation
}

// sparesServer reports whether a fault leaves the server alone: it harms the way to it.
func (f *fault) sparesServer() bool { return f.way != nil && f.expect.losses == 0 }

const (
	longCalm   = 800 * time.Millisecond
	shortFault = 1200 * time.Millisecond
	afterwards = 800 * time.Millisecond // that a run is watched when all is well again
)

// route is the way to the server.
type route interface {
	addr() string
}

// run is a fault on its way.
type run struct {
	t      testing.TB
	fault  fault
	began  time.Time
	server *redistest.Server
	other  *redistest.Server // which no fault befalls
	admin  *redis.Client     // the test's own connection, by no route
	route  route             // nil: straight
	fleet  *fleet
	state  any // of the fault
	out    outcome
}

// since is the time of the run.
func (r *run) since() time.Duration { return time.Since(r.began) }

// runFault lets a fault happen to a fleet and judges what came of it.
func runFault(t *testing.T, f fault) *outcome {
	t.Helper()
	return judged(t, func() *outcome { return play(t, f) })
}

// judged judges a run. One that proves little either way is played again, and what it
// seemed to break is told.
func judged(t *testing.T, play func() *outcome) *outcome {
	t.Helper()
	o := play()
	for range 2 {
		if !o.provesLittle() {
			break
		}
		t.Logf("stalls of the machine were felt for %v of %v, so this is played again:\n%s\n%s", o.disturbed(), o.stopped, strings.Join(o.violations(), "\n"), o.figures())
		o = play()
	}
	o.judge(t)
	return o
}

// provesLittle reports whether a run failed only in what a machine that gave too
// little time to servers and fleet may have done, or in a single stray call.
func (o *outcome) provesLittle() bool {
	bad := o.violations()
	return len(bad) > 0 && len(o.broken(holdsAlways)) == 0 && (o.busy() || len(bad) == 1 && o.strayed())
}

// strayed reports whether one call was late by less than StoreTimeout, and no other was.
func (o *outcome) strayed() bool {
	bad, strays := o.late()
	return len(bad) == 0 && len(strays) == 1
}

// judge fails the test for each broken promise, and tells the run then.
func (o *outcome) judge(t *testing.T) {
	t.Helper()
	bad := o.violations()
	for _, v := range bad {
		t.Error(v)
	}
	if len(bad) > 0 || *verboseFlag {
		t.Log(o.report())
	} else {
		t.Log(o.figures())
	}
}

// play runs a fault and returns what was recorded.
func play(t testing.TB, f fault) *outcome {
	t.Helper()
	r := &run{t: t, fault: f, began: time.Now()}
	r.server = redistest.Start(t, append(userArgs[:len(userArgs):len(userArgs)], f.args...)...)
	r.other = redistest.Start(t)
	r.admin = patient(r.t, r.server.Addr, "", "")
	if f.prepare != nil {
		r.must(f.prepare(r))
	}
	r.began = time.Now()
	setup := usualFleet(r.began, r.connect)
	if f.fleet != nil {
		f.fleet(&setup)
	}
	if f.way != nil {
		r.route = f.way(r)
	}
	asFleet(func() { r.fleet = setup.start(t) })
	r.out = outcome{fault: f.name, seed: *seedFlag, limit: setup.limit, accuracy: setup.accuracy, nodes: setup.nodes,
		timeout: cmp.Or(setup.options.StoreTimeout, defaultTimeout), tick: cmp.Or(setup.options.SyncInterval, defaultTick), expect: f.expect, well: f.sparesServer(),
		secrets: []string{secretMark, password, secretHost, "127.0.0.1", portOf(r.addr())}}
	r.phases()
	return &r.out
}

// phases are the calm, the fault and the recovery, under load.
func (r *run) phases() {
	l := usualLoad()
	if r.fault.load != nil {
		r.fault.load(&l)
	}
	stop := make(chan struct{})
	var answers func() []answer
	asFleet(func() { answers = l.drive(r.fleet, r.began, stop) })
	controls := control(r.out.timeout, l.workers*len(r.fleet.nodes), r.began, stop)
	pinged, others := pings(patient(r.t, r.server.Addr, "", ""), r.began, stop), pings(patient(r.t, r.other.Addr, "", ""), r.began, stop)
	samples := watch(r.fleet, r.began, stop)

	time.Sleep(cmp.Or(r.fault.calm, longCalm))
	r.out.clientsBefore = r.clients()
	r.out.began = r.since()
	r.must(r.fault.begin(r))
	time.Sleep(r.began.Add(r.out.began + lasting(cmp.Or(r.fault.lasts, shortFault))).Sub(time.Now()))
	r.out.ended = r.since()
	r.must(r.fault.end(r))
	r.awaitStore()
	r.fleet.awaitUp()
	time.Sleep(afterwards)
	r.out.clientsAfter, r.out.connsAfter = r.clients(), r.fleet.connections()
	r.out.stopped = r.since()

	close(stop)
	r.out.answers, r.out.controls, r.out.samples = answers(), controls(), samples()
	r.out.pings, r.out.others = pinged(), others()
	r.fleet.awaitUp() // a busy machine may have stopped it just now
	r.out.events, r.out.logs, r.out.stats = r.fleet.heard(), r.fleet.logged(), r.fleet.stats()
	r.out.serverLog = r.server.LogTail(20)
	r.out.sort()
}

// awaitStore waits until the store takes a write from somebody who comes anew,
// by the way of a node.
func (r *run) awaitStore() {
	rdb := patient(r.t, r.addr(), user, password)
	defer rdb.Close()
	for range 2000 {
		if rdb.Eval(context.Background(), "return redis.call('set', KEYS[1], 1)", []string{"probe"}).Err() == nil {
			r.out.ready = r.since()
			return
		}
		time.Sleep(2 * time.Millisecond)
	}
	r.t.Fatalf("%s: the store does not come back:\n%s", r.fault.name, r.server.LogTail(20))
}

// connect makes a node's client, with default options but for what the fault changes.
func (r *run) connect(int) redis.UniversalClient {
	opts := &redis.Options{Addr: r.addr(), Username: user, Password: password, ContextTimeoutEnabled: true} // as recommended
	if r.fault.client != nil {
		r.fault.client(r, opts)
	}
	return redis.NewClient(opts)
}

// addr is where the nodes find the store.
func (r *run) addr() string {
	if r.route != nil {
		return r.route.addr()
	}
	return r.server.Addr
}

// patient is a client for the test itself: it asks once, and not for long.
func patient(t testing.TB, addr, user, password string) *redis.Client {
	rdb := redis.NewClient(&redis.Options{Addr: addr, Username: user, Password: password, MaxRetries: -1, DialerRetries: 1,
		DialTimeout: time.Second, ReadTimeout: 200 * time.Millisecond, PoolSize: 2})
	t.Cleanup(func() { _ = rdb.Close() })
	return rdb
}

// clients is how many connections the server has; 0 if it does not say.
func (r *run) clients() int {
	info := r.admin.Info(context.Background(), "clients").Val()
	_, rest, _ := strings.Cut(info, "connected_clients:")
	line, _, _ := strings.Cut(rest, "\r\n")
	n, err := strconv.Atoi(line)
	if err != nil {
		return 0
	}
	return n
}

// do runs a command on the server by no route.
func (r *run) do(args ...any) error { return r.admin.Do(context.Background(), args...).Err() }

func (r *run) must(err error) {
	r.t.Helper()
	if err != nil {
		r.t.Fatalf("%s: %v\n%s", r.fault.name, err, r.server.LogTail(20))
	}
}

func portOf(addr string) string {
	_, port, _ := net.SplitHostPort(addr)
	return port
}
