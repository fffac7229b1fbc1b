package hybrid

import (
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
)

// logBook collects what a node logs, as text.
type logBook struct {
	mu    sync.Mutex
	text  strings.Builder
	ended chan struct{}
}

func newLogBook() (*logBook, *slog.Logger) {
	b := &logBook{ended: make(chan struct{}, 1)}
	return b, slog.New(slog.NewTextHandler(b, nil))
}

const lastWords = "so much for that"

func (b *logBook) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if strings.Contains(string(p), lastWords) {
		b.ended <- struct{}{}
		return len(p), nil
	}
	return b.text.Write(p)
}

// lines returns what a node has logged so far: lines keep their order.
func (b *logBook) lines(n *Node) []string {
	n.opts.Logger.Info(lastWords)
	<-b.ended
	b.mu.Lock()
	defer b.mu.Unlock()
	return slices.DeleteFunc(strings.Split(b.text.String(), "\n"), func(l string) bool { return l == "" })
}

// warningsOf makes a node on a client and returns what it says of its settings.
func warningsOf(t *testing.T, rdb redis.UniversalClient) []string {
	t.Helper()
	t.Cleanup(func() { _ = rdb.Close() })
	book, logger := newLogBook()
	n, err := New(rdb, &Options{Logger: logger})
	if err != nil {
		t.Fatal(err)
	}
	defer n.Close()
	return slices.DeleteFunc(book.lines(n), func(l string) bool { return !strings.Contains(l, "setting") })
}

const nowhere = "127.0.0.1:1"

func plain(o redis.Options) redis.UniversalClient {
	o.Addr = nowhere
	return redis.NewClient(&o)
}

func cluster(o redis.ClusterOptions) redis.UniversalClient {
	o.Addrs = []string{nowhere}
	return redis.NewClusterClient(&o)
}

func ring(o redis.RingOptions) redis.UniversalClient {
	o.Addrs = map[string]string{"a": nowhere}
	return redis.NewRing(&o)
}

type stopper struct{ redis.Limiter }

func (stopper) Allow() error       { return nil }
func (stopper) ReportResult(error) {}

func TestRiskySettingsAreLoggedOnce(t *testing.T) {
	for _, c := range []struct {
		rdb   redis.UniversalClient
		field string
		value string
	}{
		{plain(redis.Options{ReadTimeout: 20 * time.Millisecond}), "redis.Options.ReadTimeout", "20ms"},
		{plain(redis.Options{DialTimeout: 30 * time.Second}), "redis.Options.DialTimeout", "30s"},
		{plain(redis.Options{DialerRetryTimeout: 5 * time.Second}), "redis.Options.DialerRetryTimeout", "5s"},
		{plain(redis.Options{PoolSize: 4}), "redis.Options.PoolSize", "4"},
		{plain(redis.Options{MaxActiveConns: 9}), "redis.Options.MaxActiveConns", "9"},
		{plain(redis.Options{PoolTimeout: time.Millisecond}), "redis.Options.PoolTimeout", "1ms"},
		{plain(redis.Options{Limiter: stopper{}}), "redis.Options.Limiter", "set"},
		{redis.NewFailoverClient(&redis.FailoverOptions{MasterName: "m", SentinelAddrs: []string{nowhere}, PoolSize: 2}), "redis.Options.PoolSize", "2"},

		{plain(redis.Options{ReadTimeout: -1}), "redis.Options.ReadTimeout", "none"},
		{plain(redis.Options{ReadTimeout: -2, WriteTimeout: -2}), "redis.Options.ReadTimeout", "none"},
		{plain(redis.Options{ReadTimeout: time.Minute}), "redis.Options.ReadTimeout", "1m0s"},

		{cluster(redis.ClusterOptions{ReadTimeout: -2}), "redis.ClusterOptions.ReadTimeout", "none"},
		{cluster(redis.ClusterOptions{ReadTimeout: time.Minute}), "redis.ClusterOptions.ReadTimeout", "1m0s"},
		{cluster(redis.ClusterOptions{WriteTimeout: -2}), "redis.ClusterOptions.WriteTimeout", "none"},
		{cluster(redis.ClusterOptions{DialTimeout: time.Minute}), "redis.ClusterOptions.DialTimeout", "1m0s"},
		{cluster(redis.ClusterOptions{PoolSize: 3}), "redis.ClusterOptions.PoolSize", "3"},
		{cluster(redis.ClusterOptions{PoolTimeout: -1}), "redis.ClusterOptions.PoolTimeout", "-1ns"},
		{cluster(redis.ClusterOptions{MaxRedirects: -1}), "redis.ClusterOptions.MaxRedirects", "0"},
		{cluster(redis.ClusterOptions{ReadOnly: true}), "redis.ClusterOptions.ReadOnly", "true"},
		{cluster(redis.ClusterOptions{RouteByLatency: true}), "redis.ClusterOptions.RouteByLatency", "true"},
		{cluster(redis.ClusterOptions{RouteRandomly: true}), "redis.ClusterOptions.RouteRandomly", "true"},

		{ring(redis.RingOptions{ReadTimeout: -1}), "redis.RingOptions.ReadTimeout", "none"},
		{ring(redis.RingOptions{WriteTimeout: time.Hour}), "redis.RingOptions.WriteTimeout", "1h0m0s"},
		{ring(redis.RingOptions{PoolSize: 1}), "redis.RingOptions.PoolSize", "1"},
		{ring(redis.RingOptions{Limiter: stopper{}}), "redis.RingOptions.Limiter", "set"},
		{ring(redis.RingOptions{HeartbeatFrequency: 20 * time.Millisecond}), "redis.RingOptions.HeartbeatFrequency", "20ms"},
	} {
		t.Run(c.field+"="+c.value, func(t *testing.T) {
			got := warningsOf(t, c.rdb)
			if len(got) != 1 {
				t.Fatalf("%d warnings, want one: %q", len(got), got)
			}
			for _, part := range []string{"level=WARN", "field=" + c.field + " ", "value=" + c.value + " ", "recommended=", "why="} {
				if !strings.Contains(got[0], part) {
					t.Errorf("no %q in %s", part, got[0])
				}
			}
		})
	}
}

// wrapper is somebody's own client: what its settings come to is unknown.
type wrapper struct{ redis.UniversalClient }

func TestSoundSettingsAreNotLogged(t *testing.T) {
	for name, rdb := range map[string]redis.UniversalClient{
		"client":           plain(redis.Options{}),
		"failover":         redis.NewFailoverClient(&redis.FailoverOptions{MasterName: "m", SentinelAddrs: []string{nowhere}}),
		"failover cluster": redis.NewFailoverClusterClient(&redis.FailoverOptions{MasterName: "m", SentinelAddrs: []string{nowhere}}),
		"cluster":          cluster(redis.ClusterOptions{}),
		"ring":             ring(redis.RingOptions{}),
		"ring of four":     redis.NewRing(&redis.RingOptions{Addrs: map[string]string{"a": nowhere, "b": nowhere, "c": nowhere, "d": nowhere}, PoolSize: 4}),
		"universal":        redis.NewUniversalClient(&redis.UniversalOptions{Addrs: []string{nowhere}}),

		// The library's calls end with their contexts all the same.
		"client without a timeout, by context":  plain(redis.Options{ReadTimeout: -1, MaxRetries: 100, ContextTimeoutEnabled: true}),
		"cluster without a timeout, by context": cluster(redis.ClusterOptions{ReadTimeout: -2, ContextTimeoutEnabled: true}),
		"ring without a timeout, by context":    ring(redis.RingOptions{ReadTimeout: -1, ContextTimeoutEnabled: true}),

		// On the edge.
		"client on the edge": plain(redis.Options{ReadTimeout: 100 * time.Millisecond, DialTimeout: 5 * time.Second, DialerRetryTimeout: time.Second,
			PoolSize: 10, MaxActiveConns: 10, PoolTimeout: 20 * time.Millisecond}),
		"cluster on the edge": cluster(redis.ClusterOptions{ReadTimeout: 10 * time.Second, PoolSize: 5, MaxRedirects: 1}),
		"ring on the edge":    ring(redis.RingOptions{ReadTimeout: 10 * time.Second, PoolSize: 10, HeartbeatFrequency: 100 * time.Millisecond}),

		"wrapper": wrapper{plain(redis.Options{PoolSize: 1, ReadTimeout: time.Millisecond})},
	} {
		t.Run(name, func(t *testing.T) {
			if got := warningsOf(t, rdb); len(got) != 0 {
				t.Errorf("%q", got)
			}
		})
	}
}

// All risks at once are as many lines as there are settings.
func TestEveryRiskySettingIsLogged(t *testing.T) {
	got := warningsOf(t, plain(redis.Options{
		ReadTimeout: time.Millisecond, DialTimeout: time.Minute, DialerRetryTimeout: time.Minute,
		PoolSize: 1, MaxActiveConns: 1, PoolTimeout: time.Millisecond, Limiter: stopper{},
	}))
	if len(got) != 7 {
		t.Errorf("%d warnings, want 7: %q", len(got), got)
	}
}

// A client that nobody made crashes whoever uses it: here rather than later, in
// a goroutine of the node.
func TestNewRefusesClientsThatNobodyMade(t *testing.T) {
	for name, rdb := range map[string]redis.UniversalClient{
		"redis.Client": &redis.Client{}, "redis.ClusterClient": &redis.ClusterClient{}, "redis.Ring": &redis.Ring{},
	} {
		n, err := New(rdb, nil)
		wantError(t, err, ErrInvalidOption, "rdb", name, "constructor")
		if n != nil {
			t.Errorf("%s: a node beside the error", name)
		}
	}
}
