package chaos

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/hybridlimit/hybrid"
	"github.com/hybridlimit/hybrid/internal/redistest"
)

// The least that a user of Redis must be allowed: what the library sends, and what
// its scripts call, for which Redis asks the same user.
var (
	leastKeys     = "~hybrid:{}*"
	leastCommands = []string{
		"evalsha", "eval", // settles and heartbeats; eval where the script is not loaded yet
		"time", "get", "set", "del", "pttl", // called by the script of a settle
		"zadd", "zrangebyscore", "zremrangebyscore", "pexpire", // heartbeats and recall marks
		"zscore", "zrange", // heartbeats
		"zremrangebyrank", // recall marks
		"zrem",            // leaving a fleet
	}
	leastForCluster = []string{
		"cluster|slots", "asking", // to find the owners of keys, also while they move
		"command", // or the client asks all nodes for it before each mark, and is refused
	}
	leastForRing = []string{"ping"} // or the client takes all shards for down after 1.5 s
)

const (
	limiterUser     = "limiter"
	limiterPassword = "secret"
)

// rights is what an ACL SETUSER gets.
func rights(keys string, commands ...[]string) []string {
	all := []string{keys}
	for _, c := range slices.Concat(commands...) {
		all = append(all, "+"+c)
	}
	return all
}

// With the least rights everything works, and without any one of them something does not.
func TestLeastACL(t *testing.T) {
	least := rights(leastKeys, leastCommands)
	t.Logf("ACL SETUSER %s on >%s %s", limiterUser, limiterPassword, strings.Join(least, " "))
	all := redistest.Start(t)
	if err := useAs(t, all, least)(); err != nil {
		t.Errorf("with all of them: %v", err)
	}
	for _, refused := range refusedCommands(t, all) {
		if !introduction(refused) {
			t.Errorf("refused, and nobody noticed: %s", refused)
		}
	}
	outcomes := make([]error, len(least))
	var wg sync.WaitGroup
	for i := range least {
		use := useAs(t, redistest.Start(t), slices.Delete(slices.Clone(least), i, i+1))
		wg.Go(func() { outcomes[i] = use() })
	}
	wg.Wait()
	for i, err := range outcomes {
		if t.Logf("without %s: %v", least[i], err); err == nil {
			t.Errorf("without %s nothing failed", least[i])
		}
	}
}

// introduction reports whether a command is of those with which a client of a newer
// Redis introduces itself; it goes on without.
func introduction(command string) bool { return strings.HasPrefix(command, "client") }

// refusedCommands lists what the server refused to its users.
func refusedCommands(t *testing.T, s *redistest.Server) (objects []string) {
	t.Helper()
	entries, err := s.Client(t).ACLLog(context.Background(), 100).Result()
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		objects = append(objects, e.Object)
	}
	return objects
}

// useAs prepares useAll for a user with these rights on one server.
func useAs(t *testing.T, s *redistest.Server, rights []string) func() error {
	t.Helper()
	s.SetUser(t, limiterUser, limiterPassword, rights...)
	admin := s.Client(t)
	return func() error {
		return useAll(func() redis.UniversalClient { return s.UserClient(t, limiterUser, limiterPassword) }, admin)
	}
}

// useAll uses all that a service can, on two nodes, and returns what did not work.
func useAll(connect func() redis.UniversalClient, admin redis.UniversalClient) error {
	var nodes [2]*hybrid.Node
	for i := range nodes {
		node, err := hybrid.New(connect(), &hybrid.Options{SyncInterval: 20 * time.Millisecond, StoreTimeout: 2 * time.Second,
			Logger: slog.New(slog.DiscardHandler)})
		if err != nil {
			return err
		}
		defer node.Close()
		nodes[i] = node
	}
	for _, use := range []func([2]*hybrid.Node, redis.UniversalClient) error{
		useAccuracies, useMarks, useReset, useLowerLimit, useFleet,
	} {
		if err := use(nodes, admin); err != nil {
			return err
		}
	}
	for _, node := range nodes {
		if err := useEnd(node); err != nil {
			return err
		}
	}
	return nil
}

// onBoth makes a limiter on both nodes.
func onBoth(nodes [2]*hybrid.Node, name string, l hybrid.Limit, acc hybrid.Accuracy) (both [2]*hybrid.Limiter, err error) {
	for i, node := range nodes {
		lim, err := node.Limiter(name, l, &hybrid.LimiterOptions{Accuracy: acc, OnFailure: hybrid.FailClosed})
		if err != nil {
			return both, err
		}
		both[i] = lim
	}
	return both, nil
}

// mustTake is AllowN that must be answered by the library's own means.
func mustTake(l *hybrid.Limiter, key string, n int64, want bool) error {
	r, err := l.AllowN(context.Background(), key, n)
	if err != nil || r.Path == hybrid.PathFallback || r.Allowed != want {
		return fmt.Errorf("%s: %d of %q: allowed %t by %v, error %v", l.Name(), n, key, r.Allowed, r.Path, err)
	}
	return nil
}

func useAccuracies(nodes [2]*hybrid.Node, _ redis.UniversalClient) error {
	for _, acc := range []hybrid.Accuracy{hybrid.Exact, hybrid.Strict, hybrid.Balanced} {
		both, err := onBoth(nodes, acc.String(), hybrid.PerMinute(1000), acc)
		if err != nil {
			return err
		}
		for i := range 40 {
			if err := mustTake(both[i%2], "k", 1, true); err != nil {
				return err
			}
		}
		if r, err := both[0].Peek(context.Background(), "k"); err != nil || r.Path != hybrid.PathExact {
			return fmt.Errorf("Peek: by %v, error %v", r.Path, err)
		}
	}
	return nil
}

// useMarks lets one node need what the other holds of a window.
func useMarks(nodes [2]*hybrid.Node, _ redis.UniversalClient) error {
	both, err := onBoth(nodes, "scarce", hybrid.Window(10_000, 24*time.Hour), hybrid.Strict)
	if err != nil {
		return err
	}
	holder, needy := both[0], both[1]
	for range 200 {
		if err := mustTake(holder, "k", 1, true); err != nil {
			return err
		}
	}
	err = until(3*time.Second, func() error {
		r, err := needy.Peek(context.Background(), "k")
		if err != nil {
			return err
		}
		return mustTake(needy, "k", r.Remaining, true) // refused only if what is free has changed
	})
	if err != nil {
		return err
	}
	if err := mustTake(needy, "k", 2, false); err != nil {
		return err
	}
	return until(3*time.Second, func() error {
		if nodes[0].Stats().Total.Recalled == 0 {
			return errors.New("nothing was recalled")
		}
		return nil
	})
}

func useReset(nodes [2]*hybrid.Node, _ redis.UniversalClient) error {
	both, err := onBoth(nodes, "reset", hybrid.PerHour(5), hybrid.Exact)
	if err != nil {
		return err
	}
	for range 2 {
		if err := mustTake(both[0], "k", 5, true); err != nil {
			return err
		}
		if err := both[0].Reset(context.Background(), "k"); err != nil {
			return err
		}
	}
	return nil
}

// useLowerLimit writes an account by a lower limit than it was filled by: it must
// not live shorter for that.
func useLowerLimit(nodes [2]*hybrid.Node, admin redis.UniversalClient) error {
	ctx := context.Background()
	both, err := onBoth(nodes, "lowered", hybrid.PerHour(1000), hybrid.Exact)
	if err != nil {
		return err
	}
	if err := mustTake(both[0], "k", 900, true); err != nil {
		return err
	}
	if err := both[1].SetLimit(hybrid.PerSecond(10)); err != nil {
		return err
	}
	if err := both[1].Charge("k", 1); err != nil {
		return err
	}
	if err := nodes[1].Flush(ctx); err != nil {
		return err
	}
	left, err := admin.PTTL(ctx, "hybrid:{}a1:7:lowered:k").Result()
	if err != nil || left < 50*time.Minute {
		return fmt.Errorf("an account of an hour lives for %v, error %v", left, err)
	}
	return nil
}

// useFleet waits until the nodes know each other.
func useFleet(nodes [2]*hybrid.Node, _ redis.UniversalClient) error {
	return until(4*time.Second, func() error {
		for _, node := range nodes {
			for name, st := range node.Stats().Limiters {
				if st.Fleet != len(nodes) {
					return fmt.Errorf("%s: a fleet of %d", name, st.Fleet)
				}
			}
		}
		return nil
	})
}

// useEnd closes a node, and looks at what has failed in silence.
func useEnd(node *hybrid.Node) error {
	if err := node.Flush(context.Background()); err != nil {
		return err
	}
	st := node.Stats()
	if st.StoreDowns+st.RecallErrors+st.Total.NotRun+st.Total.Unknown > 0 {
		return fmt.Errorf("outages %d, marks that failed %d, operations that failed %d", st.StoreDowns, st.RecallErrors, st.Total.NotRun+st.Total.Unknown)
	}
	return node.Close()
}

// until tries until it works or the time is over.
func until(d time.Duration, try func() error) error {
	for start := time.Now(); ; time.Sleep(20 * time.Millisecond) {
		if err := try(); err == nil || time.Since(start) > d {
			return err
		}
	}
}
