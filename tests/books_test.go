package tests_test

import (
	"errors"
	"flag"
	"fmt"
	"math"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/hybridlimit/hybrid"
)

// This file is random fleets that do everything a caller may do, in which nothing is lost:
// then Redis has exactly what was used. used = admitted + charged − refunded + expired.

var bookSeeds = flag.Uint64("books", 24, "how many random fleets keep books")

// books is a fleet and what its callers know that was used.
type books struct {
	*world
	rng      *rand.Rand
	limit    hybrid.Limit // of each user: it does not refill while the test runs
	accuracy hybrid.Accuracy
	maxKeys  int
	lasting  bool // long enough for leases to end; then there is no Reset

	nodes []*bookNode
	ended []*bookNode // that have left

	mu       sync.Mutex
	used     map[string]float64 // by user
	expected float64            // of all of them, without what expired
}

// bookNode is one server, which limits users and one thing that they share.
type bookNode struct {
	*node
	users, shared *hybrid.Limiter
}

// sharedLimit denies most of what is asked of it.
var sharedLimit = hybrid.PerDay(1)

const bookUsers = 5

func (b *books) start() {
	n := b.node(hybrid.Options{MaxKeys: b.maxKeys})
	b.nodes = append(b.nodes, &bookNode{n,
		n.limiter("users", b.limit, hybrid.LimiterOptions{Accuracy: b.accuracy}),
		n.limiter("shared", sharedLimit, hybrid.LimiterOptions{Accuracy: hybrid.Exact})})
}

func (b *books) any() *bookNode { return b.nodes[b.rng.IntN(len(b.nodes))] }

func (b *books) user() string { return fmt.Sprint("user ", b.rng.IntN(bookUsers)) }

// cost is that of a request: small as a rule, and now and then a good part of the limit.
func (b *books) cost() int64 {
	if b.rng.IntN(10) == 0 {
		return 1 + b.rng.Int64N(max(b.limit.Burst()/3, 1))
	}
	return 1 + b.rng.Int64N(3)
}

// enter notes tokens that were used, or given back.
func (b *books) enter(user string, tokens float64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.used[user] += tokens
	b.expected += tokens
}

// charged is the part of an admission that the account has to pay: floors are carved out
// of the limit, or come on top of it, and only the latter are charged.
func (b *books) charged(r hybrid.Result, cost int64) float64 {
	if r.Path != hybrid.PathFloor || b.accuracy == hybrid.Balanced {
		return float64(cost)
	}
	return 0
}

// allow asks for tokens of a user.
func (b *books) allow(n *bookNode, user string, cost int64) {
	r, err := n.users.AllowN(ctx, user, cost)
	switch {
	case err != nil:
		b.t.Error(err)
	case r.Allowed:
		b.enter(user, b.charged(r, cost))
	}
}

// allowAll asks for tokens of a user and of what all share, which denies most.
func (b *books) allowAll(n *bookNode, user string, cost int64) {
	checks := []hybrid.Check{{Limiter: n.users, Key: user, N: cost}, {Limiter: n.shared, Key: "all"}}
	r, err := n.AllowAll(ctx, checks...)
	switch {
	case err != nil && !errors.Is(err, hybrid.ErrClosed):
		b.t.Error(err)
	case r.Allowed:
		b.t.Error("the shared limit was used up before")
	}
}

// burst is requests at the same time, on all nodes.
func (b *books) burst() {
	var all sync.WaitGroup
	for range 1 + b.rng.IntN(30) {
		n, user, cost, whole, delay := b.any(), b.user(), b.cost(), b.rng.IntN(5) > 0, time.Duration(b.rng.IntN(3))*time.Millisecond
		all.Go(func() {
			time.Sleep(delay)
			if whole {
				b.allow(n, user, cost)
			} else {
				b.allowAll(n, user, cost)
			}
		})
	}
	all.Wait()
}

// charge charges what leaves the account no more than full: what is beyond twice the burst
// would be cut off.
func (b *books) charge() {
	user, cost := b.user(), b.cost()
	if b.used[user]+float64(cost) > float64(b.limit.Burst()) {
		return
	}
	if err := b.any().users.Charge(user, cost); err != nil {
		b.t.Error(err)
	}
	b.enter(user, float64(cost))
}

// refund gives back what was used and Redis knows of: what it does not know of it could not
// take off.
func (b *books) refund() {
	user := b.user()
	b.flush()
	if most := int64(b.used[user]); most > 0 {
		n := 1 + b.rng.Int64N(most)
		if err := b.any().users.Refund(user, n); err != nil {
			b.t.Error(err)
		}
		b.enter(user, -float64(n))
	}
}

// flush tells Redis all, and looks whether it has been.
func (b *books) flush() {
	for _, n := range b.nodes {
		if err := n.Flush(ctx); err != nil {
			b.t.Errorf("Flush: %v", err)
		}
	}
	if b.lasting {
		return // what expired is known of all users together
	}
	for user, used := range b.used {
		s := b.state(user)
		if got := s.Used - float64(s.Lent); math.Abs(got-used) > 0.5 {
			b.t.Errorf("after Flush %.2f of %q are used and %d lent, want %.2f used", got, user, s.Lent, used)
		}
	}
}

// state is what Redis has of a user.
func (b *books) state(user string) hybrid.AccountState {
	s, err := b.any().users.Inspect(ctx, user)
	if err != nil || s.Store == nil {
		b.t.Fatalf("%v, %s", err, s.StoreCause)
	}
	return *s.Store
}

// reset frees a user. What other nodes have not told is told before: Redis could not know
// that it was used before the reset.
func (b *books) reset() {
	if b.lasting {
		return
	}
	user := b.user()
	n := b.any()
	for _, other := range b.nodes {
		if other != n {
			if err := other.Flush(ctx); err != nil {
				b.t.Errorf("Flush: %v", err)
			}
		}
	}
	if err := n.users.Reset(ctx, user); err != nil {
		b.t.Errorf("Reset: %v", err)
	}
	b.enter(user, -b.used[user])
}

// leave ends a node in order, in the middle of requests of several limits.
func (b *books) leave() {
	i := b.rng.IntN(len(b.nodes))
	n := b.nodes[i]
	b.nodes = append(b.nodes[:i:i], b.nodes[i+1:]...)
	b.ended = append(b.ended, n)
	var all sync.WaitGroup
	for range b.rng.IntN(4) {
		user, cost, delay := b.user(), b.cost(), time.Duration(b.rng.IntN(2000))*time.Microsecond
		all.Go(func() {
			time.Sleep(delay)
			b.allowAll(n, user, cost)
		})
	}
	time.Sleep(time.Duration(b.rng.IntN(2000)) * time.Microsecond)
	if err := n.Close(); err != nil {
		b.t.Errorf("Close: %v", err)
	}
	all.Wait()
	if len(b.nodes) == 0 || b.rng.IntN(2) == 0 {
		b.start()
	}
}

// pause lets time pass: a moment, some ticks, and where leases may end, more than they last.
func (b *books) pause() {
	longest := []time.Duration{time.Millisecond, 500 * time.Millisecond, 5 * time.Second}
	if b.lasting {
		longest = append(longest, 3*time.Minute)
	}
	time.Sleep(time.Duration(b.rng.Int64N(int64(longest[b.rng.IntN(len(longest))]))))
}

// act does one thing.
func (b *books) act() {
	switch b.rng.IntN(16) {
	case 0, 1, 2:
		b.pause()
	case 3, 4:
		b.charge()
	case 5:
		b.refund()
	case 6:
		b.flush()
	case 7:
		b.reset()
	case 8:
		b.leave()
	case 9:
		if len(b.nodes) < 4 {
			b.start()
		}
	default:
		b.burst()
	}
}

// close ends all nodes, and compares the books.
func (b *books) close() {
	var expired float64 // of the evicted, what no request had paid to return
	evictions := uint64(0)
	for len(b.nodes) > 0 {
		n := b.nodes[0]
		b.nodes, b.ended = b.nodes[1:], append(b.ended, n)
		if err := n.Close(); err != nil {
			b.t.Errorf("Close: %v", err)
		}
	}
	for _, n := range b.ended {
		expired += float64(n.Stats().Limiters["users"].Expired)
		evictions += n.Stats().Evictions
	}
	if expired > 0 && evictions == 0 && !b.lasting {
		b.t.Errorf("%.0f tokens expired, of no slice that lasted so long", expired)
	}
	b.start()
	got, lent := 0.0, int64(0)
	for user, used := range b.used {
		s := b.state(user)
		got, lent = got+s.Used, lent+s.Lent
		if least, most := used-0.5, used+expired+0.5; s.Used < least || s.Used > most {
			b.t.Errorf("%.2f of %q are used, want %.2f; %.0f expired of all users", s.Used, user, used, expired)
		}
	}
	if math.Abs(got-b.expected-expired) > 0.5 || float64(lent) > expired {
		b.t.Errorf("%.2f are used and %d lent, want %.2f used, of which %.0f expired", got, lent, b.expected+expired, expired)
	}
}

// keepBooks plays one random fleet.
func keepBooks(w *world, seed uint64) {
	rng := rand.New(rand.NewPCG(seed, 11))
	b := &books{world: w, rng: rng, used: map[string]float64{}, lasting: seed%3 == 0,
		accuracy: []hybrid.Accuracy{hybrid.Strict, hybrid.Exact, hybrid.Balanced, hybrid.Within(0, 0.3)}[rng.IntN(4)],
		maxKeys:  []int{1, 2, 4, 1000}[rng.IntN(4)],
	}
	count := []int64{8, 50, 1000}[rng.IntN(3)]
	b.limit = hybrid.Per(count, 100*365*24*time.Hour)
	if rng.IntN(3) == 0 {
		b.limit = hybrid.Window(count, 30*365*24*time.Hour) // none ends soon after the clock of the bubble begins
	}
	for range 1 + rng.IntN(3) {
		b.start()
	}
	allow(w.t, b.nodes[0].shared, "all", 1)
	if rng.IntN(2) == 0 {
		time.Sleep(30 * time.Second) // floors open
	}
	for range 60 {
		b.act()
	}
	b.close()
}

func TestTheBooksAreExact(t *testing.T) {
	for seed := range *bookSeeds {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			t.Parallel()
			story(t, func(w *world) { keepBooks(w, seed) })
		})
	}
}
