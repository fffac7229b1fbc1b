package exact

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/hybridlimit/hybrid/internal/redistest"
	"github.com/hybridlimit/hybrid/slice"
)

// slow does not refill during a test.
var slow = Per(1000, maxPeriod)

// one asks for one token.
func one(s *Store, key string) *slice.Settle {
	return &slice.Settle{Account: s.Account("api", key), Rule: slow.Rule(),
		Usage: slice.Usage{Needs: []slice.Need{{Cost: 1, Count: 1}}}}
}

func ones(s *Store, n int, prefix string) []*slice.Settle {
	batch := make([]*slice.Settle, n)
	for i := range batch {
		batch[i] = one(s, fmt.Sprint(prefix, i))
	}
	return batch
}

// taken is what Redis has counted for a key of ones.
func taken(t testing.TB, s *Store, key string) int64 {
	t.Helper()
	d, err := s.Peek(context.Background(), "api", key, slow)
	if err != nil {
		t.Fatal(err)
	}
	return d.Limit - d.Remaining
}

func outcomes(batch []*slice.Settle) map[slice.Outcome]int {
	n := map[slice.Outcome]int{}
	for _, e := range batch {
		n[e.Outcome]++
	}
	return n
}

// faulty runs test with a store whose way to Redis can be disturbed, on each
// kind of client with its retries at their defaults, and a store that sees the truth.
func faulty(t *testing.T, test func(t *testing.T, s, truth *Store, p *redistest.Proxy)) {
	t.Run("client", func(t *testing.T) {
		server := redistest.Start(t)
		p := redistest.NewProxy(t, server.Addr)
		rdb := redis.NewClient(&redis.Options{Addr: p.Addr, ReadTimeout: 300 * time.Millisecond})
		t.Cleanup(func() { _ = rdb.Close() })
		test(t, newStore(t, rdb), newStore(t, server.Client(t)), p)
	})
	t.Run("ring", func(t *testing.T) {
		server := redistest.Start(t)
		p := redistest.NewProxy(t, server.Addr)
		rdb := redis.NewRing(&redis.RingOptions{Addrs: map[string]string{"a": p.Addr}, ReadTimeout: 300 * time.Millisecond})
		t.Cleanup(func() { _ = rdb.Close() })
		test(t, newStore(t, rdb), newStore(t, server.Client(t)), p)
	})
	t.Run("cluster", func(t *testing.T) {
		cluster := redistest.StartCluster(t, 1)
		p := redistest.NewProxy(t, cluster.Servers[0].Addr)
		rdb := redis.NewClusterClient(&redis.ClusterOptions{
			Addrs: []string{p.Addr}, ReadTimeout: 300 * time.Millisecond,
			ClusterSlots: func(context.Context) ([]redis.ClusterSlot, error) {
				return []redis.ClusterSlot{{Start: 0, End: 16383, Nodes: []redis.ClusterNode{{Addr: p.Addr}}}}, nil
			},
		})
		t.Cleanup(func() { _ = rdb.Close() })
		test(t, newStore(t, rdb), newStore(t, cluster.Client(t)), p)
	})
	t.Run("wrapped client", func(t *testing.T) {
		server := redistest.Start(t)
		p := redistest.NewProxy(t, server.Addr)
		rdb := redis.NewClient(&redis.Options{Addr: p.Addr, ReadTimeout: 300 * time.Millisecond})
		t.Cleanup(func() { _ = rdb.Close() })
		test(t, newStore(t, struct{ redis.UniversalClient }{rdb}), newStore(t, server.Client(t)), p)
	})
}

// Redis executes the script, and the reply is lost: once is counted, and the outcome is unknown.
func TestLostReplyCountsOnce(t *testing.T) {
	faulty(t, func(t *testing.T, s, truth *Store, p *redistest.Proxy) {
		ctx := context.Background()
		s.Settle(ctx, ones(s, 3, "warm")) // the script is loaded
		for name, lose := range map[string]func(int, string){"cut": p.CutAfter, "swallow": p.Swallow} {
			for _, n := range []int{1, 20, 100} { // one call; one or a pipeline; a pipeline
				lose(1, settleScript.sha)
				batch := ones(s, n, fmt.Sprint(name, n, "-"))
				hits := p.Hits()
				s.Settle(ctx, batch)
				if p.Hits() != hits+1 {
					t.Fatalf("%s %d: sent %d times", name, n, p.Hits()-hits)
				}
				for i, e := range batch {
					got := taken(t, truth, fmt.Sprint(name, n, "-", i))
					if got > 1 || e.Outcome == slice.Ran && got != 1 || e.Outcome == slice.NotRun && got != 0 {
						t.Fatalf("%s %d: account %d: %v (%v), and counted %d times", name, n, i, e.Outcome, e.Err, got)
					}
				}
				if outcomes(batch)[slice.Unknown] == 0 {
					t.Fatalf("%s %d: no outcome is unknown: %v", name, n, outcomes(batch))
				}
			}
		}
	})
}

// The reply that says NOSCRIPT arrives, the reply to the script that is sent then is lost.
func TestLostReplyAfterNoScript(t *testing.T) {
	faulty(t, func(t *testing.T, s, truth *Store, p *redistest.Proxy) {
		p.CutAfter(1, "lease epoch, microseconds") // the source
		batch := ones(s, 10, "k")
		s.Settle(context.Background(), batch)
		for i, e := range batch {
			got := taken(t, truth, fmt.Sprint("k", i))
			if got > 1 || e.Outcome == slice.Ran && got != 1 || e.Outcome == slice.NotRun && got != 0 {
				t.Fatalf("account %d: %v (%v), and counted %d times", i, e.Outcome, e.Err, got)
			}
		}
		if outcomes(batch)[slice.Unknown] == 0 {
			t.Fatalf("no outcome is unknown: %v", outcomes(batch))
		}
	})
}

// The connection breaks before Redis sees the request: nothing is counted, and nothing is sent again.
func TestLostRequest(t *testing.T) {
	faulty(t, func(t *testing.T, s, truth *Store, p *redistest.Proxy) {
		s.Settle(context.Background(), ones(s, 1, "warm"))
		p.CutBefore(1, settleScript.sha)
		e := one(s, "k")
		s.Settle(context.Background(), []*slice.Settle{e})
		if e.Outcome != slice.Unknown || taken(t, truth, "k") != 0 || p.Hits() != 1 {
			t.Fatalf("%v, %d hits", e, p.Hits())
		}
	})
}

func TestCertainlyNotRun(t *testing.T) {
	ctx := context.Background()
	check := func(t *testing.T, s *Store, ctx context.Context) {
		t.Helper()
		for _, n := range []int{1, 200} {
			batch := ones(s, n, "k")
			s.Settle(ctx, batch)
			if outcomes(batch)[slice.NotRun] != n || batch[0].Err == nil {
				t.Fatalf("%v: %v", outcomes(batch), batch[0].Err)
			}
		}
	}
	refused := redis.Options{Addr: "127.0.0.1:1", DialerRetries: 1, MaxRetries: -1}
	t.Run("refused port", func(t *testing.T) { check(t, newStore(t, redis.NewClient(&refused)), ctx) })
	t.Run("unknown host", func(t *testing.T) {
		o := refused
		o.Addr = "no-such-host.invalid:6379"
		check(t, newStore(t, redis.NewClient(&o)), ctx)
	})
	t.Run("cluster away", func(t *testing.T) {
		check(t, newStore(t, redis.NewClusterClient(&redis.ClusterOptions{Addrs: []string{"127.0.0.1:1"}, DialerRetries: 1, MaxRedirects: -1})), ctx)
	})
	t.Run("ring away", func(t *testing.T) {
		rdb := redis.NewRing(&redis.RingOptions{Addrs: map[string]string{"a": "127.0.0.1:1"}, MaxRetries: -1})
		defer rdb.Close()
		check(t, newStore(t, rdb), ctx)
	})
	t.Run("closed client", func(t *testing.T) {
		rdb := redis.NewClient(&refused)
		_ = rdb.Close()
		check(t, newStore(t, rdb), ctx)
	})
	t.Run("pool timeout", func(t *testing.T) {
		rdb := redis.NewClient(&redis.Options{Addr: redistest.Mini(t).Addr(), PoolSize: 1, PoolTimeout: 20 * time.Millisecond})
		defer rdb.Close()
		conn := rdb.Conn()
		defer conn.Close()
		conn.Ping(ctx) // holds the only connection
		s, e := newStore(t, rdb), one(newStore(t, rdb), "k")
		s.Settle(ctx, []*slice.Settle{e})
		if e.Outcome != slice.NotRun || !errors.Is(e.Err, redis.ErrPoolTimeout) {
			t.Fatal(e.Outcome, e.Err)
		}
	})
	t.Run("ended context", func(t *testing.T) {
		done, cancel := context.WithCancel(ctx)
		cancel()
		check(t, newStore(t, redistest.MiniClient(t)), done)
	})
}

func TestOutcomeOfProxyErrors(t *testing.T) {
	for text, want := range map[string]slice.Outcome{
		"OOM command not allowed":           slice.NotRun,
		"ERR max number of clients reached": slice.NotRun,
		"upstream failure":                  slice.Unknown,
		"":                                  slice.Unknown,
		"A":                                 slice.Unknown,
		"ERR":                               slice.Unknown,
		"BUSY":                              slice.Unknown,
		"MOVED 1 127.0.0.1:7":               slice.NotRun,
		"Timeout: the server may have executed it": slice.Unknown,

		// twemproxy: strerror of what became of its connection to the server
		"ERR Connection timed out":     slice.Unknown,
		"ERR Connection reset by peer": slice.Unknown,
		"ERR Connection refused":       slice.Unknown,
		"ERR Broken pipe":              slice.Unknown,
		"ERR Invalid argument":         slice.Unknown,
		"ERR unknown":                  slice.Unknown,

		"ERR handle response, backend conn reset":                 slice.Unknown, // Codis
		"IOERR error or timeout reading to target instance":       slice.Unknown,
		"TIMEOUT no answer from the server":                       slice.Unknown,
		"MASTERDOWN Link with MASTER is down":                     slice.NotRun,
		"ERR unknown command `evalsha`, with args beginning with": slice.NotRun, // Redis 6

		// scripts that were broken off, in the words of Redis 6.2 and 7
		"ERR Error running script (call to f_1): @user_script:7: -OOM command not allowed":      slice.Unknown,
		"OOM command not allowed when used memory > 'maxmemory'. script: 1, on @user_script:7.": slice.Unknown,
	} {
		if got := outcomeOf(fmt.Errorf("wrapped: %w", refusal(text))); got != want {
			t.Errorf("%q: %v", text, got)
		}
	}
	if outcomeOf(errors.New("EOF")) != slice.Unknown {
		t.Error("any other error leaves it unknown")
	}
}

// A client holds a connection for ReadTimeout, 3 s by default, when no reply comes,
// unless it is told to look at contexts.
func TestContextEndsCalls(t *testing.T) {
	p := redistest.NewProxy(t, redistest.Start(t).Addr)
	for kind, rdb := range map[string]redis.UniversalClient{
		"client": redis.NewClient(&redis.Options{Addr: p.Addr, ContextTimeoutEnabled: true}),
		"ring":   redis.NewRing(&redis.RingOptions{ContextTimeoutEnabled: true, Addrs: map[string]string{"a": p.Addr}, HeartbeatFrequency: time.Hour}),
	} {
		t.Run(kind, func(t *testing.T) {
			defer rdb.Close()
			p.BlackHole(false)
			s := newStore(t, rdb)
			if e := one(s, "k"); settled(s, e) != slice.Ran {
				t.Fatal(e.Err)
			}
			p.BlackHole(true)
			for call, run := range map[string]func(context.Context) error{
				"settle": func(ctx context.Context) error {
					e := one(s, "k")
					s.Settle(ctx, []*slice.Settle{e})
					if e.Outcome != slice.Unknown {
						t.Errorf("no reply, and the settle has %v", e.Outcome)
					}
					return e.Err
				},
				"heartbeat": func(ctx context.Context) error {
					f := &slice.Fleet{Limiter: "api"}
					s.Heartbeat(ctx, "m", time.Second, []*slice.Fleet{f})
					return f.Err
				},
			} {
				ctx, cancel := context.WithTimeout(context.Background(), 100*time.Millisecond)
				start := time.Now()
				err := run(ctx)
				cancel()
				if took := time.Since(start); err == nil || took > 2*time.Second {
					t.Errorf("%s: %v after %v, want an error after 100 ms", call, err, took)
				}
			}
		})
	}
}

func settled(s *Store, e *slice.Settle) slice.Outcome {
	s.Settle(context.Background(), []*slice.Settle{e})
	return e.Outcome
}

// seen is a hook that counts what passes it: a tracer, say.
type seen struct{ calls atomic.Int64 }

func (s *seen) DialHook(next redis.DialHook) redis.DialHook { return next }

func (s *seen) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		s.calls.Add(1)
		return next(ctx, cmd)
	}
}

func (s *seen) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, cmds []redis.Cmder) error {
		s.calls.Add(1)
		return next(ctx, cmds)
	}
}

// Hooks that users have put on their client see every call of the library; a copy
// of the client (WithTimeout) would not have them.
func TestHooksOfTheClientSeeEveryCall(t *testing.T) {
	rdb, hook := redistest.Start(t).Client(t), &seen{}
	s := newStore(t, rdb)
	mustRun(t, s, ones(s, 1, "script"))
	rdb.AddHook(hook)
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	s.Settle(ctx, ones(s, 65, "k")) // two calls in a pipeline
	s.Heartbeat(ctx, "m", time.Second, []*slice.Fleet{{Limiter: "api"}})
	if err := s.Probe(ctx, 0); err != nil {
		t.Error(err)
	}
	if _, err := s.Marks(ctx, 0, 10); err != nil {
		t.Error(err)
	}
	if n := hook.calls.Load(); n < 4 {
		t.Errorf("the hook saw %d of 4 round trips", n)
	}
}
