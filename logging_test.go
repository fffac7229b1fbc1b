package hybrid

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/hybridlimit/hybrid/exact"
	"github.com/hybridlimit/hybrid/internal/redistest"
)

// What a log must not tell, in a run in which everything goes wrong.
const (
	secretKey      = "patient-4711"
	secretPassword = "correct horse"
)

// roughRun lets a node meet a poisoned account, tiers that are none, a hook that
// panics and an outage, and returns what it logs.
func roughRun(t *testing.T, opts Options) (lines []string, addr string) {
	t.Helper()
	mini := redistest.Mini(t)
	mini.RequireAuth(secretPassword)
	addr = mini.Addr()
	rdb := redis.NewClient(&redis.Options{Addr: addr, Password: secretPassword, PoolSize: 1, DialerRetries: 1})
	t.Cleanup(func() { _ = rdb.Close() })
	told := make(chan error, 2)
	opts.Hooks.Store = func(e StoreEvent) {
		told <- e.Err
		panic(fmt.Sprint("a hook met ", secretKey, " at ", addr))
	}
	book, logger := newLogBook()
	opts.Logger, opts.SyncInterval = logger, 10*time.Millisecond
	opts.StoreTimeout = 200 * time.Millisecond
	n, err := New(rdb, &opts)
	if err != nil {
		t.Fatal(err)
	}
	defer n.Close()
	l := roughLimiter(t, n)
	poison(t, rdb, l)
	if r, err := l.Allow(context.Background(), secretKey); err != nil || r.Path != PathFallback {
		t.Errorf("a poisoned account: %+v, %v; want the failure policy", r, err)
	}
	mini.Close()
	if cause := outage(t, l, told); !strings.Contains(cause.Error(), addr) {
		t.Errorf("the hook was told %q, without the address", cause)
	}
	redistest.Eventually(t, "the hook's panic is logged", func() bool { return len(book.lines(n)) > 4 })
	if n := n.Stats().Poisoned; n == 0 {
		t.Error("no poisoned account is counted")
	}
	return book.lines(n), addr
}

func roughLimiter(t *testing.T, n *Node) *Limiter {
	t.Helper()
	var calls atomic.Int64
	tiers := func(key string) (Limit, bool) {
		if calls.Add(1) == 1 {
			panic(errors.New("no tier for " + key))
		}
		return PerSecond(-1), true
	}
	l, err := n.Limiter("api", PerSecond(1000), &LimiterOptions{Accuracy: Strict, LimitFor: tiers})
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// poison puts a value of another type where a key's account belongs.
func poison(t *testing.T, rdb *redis.Client, l *Limiter) {
	t.Helper()
	store, err := exact.New(rdb, nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := rdb.SAdd(context.Background(), store.Account(l.Name(), secretKey), "poison").Err(); err != nil {
		t.Fatal(err)
	}
}

// outage asks until the node gives the store up, and returns why it did.
func outage(t *testing.T, l *Limiter, told <-chan error) error {
	t.Helper()
	give := time.After(10 * time.Second)
	for i := 0; ; i++ {
		if _, err := l.Allow(context.Background(), fmt.Sprint(secretKey, i)); err != nil {
			t.Fatal(err)
		}
		select {
		case cause := <-told:
			return cause
		case <-give:
			t.Fatal("ten seconds without Redis, and the hook is not told")
		case <-time.After(5 * time.Millisecond):
		}
	}
}

// wantLines fails unless each of the texts is in a line of its own.
func wantLines(t *testing.T, lines []string, texts ...string) {
	t.Helper()
	all := strings.Join(lines, "\n")
	for _, text := range texts {
		if n := strings.Count(all, text); n != 1 {
			t.Errorf("%q is logged %d times, want once:\n%s", text, n, all)
		}
	}
}

func TestLogsTellNoSecrets(t *testing.T) {
	lines, addr := roughRun(t, Options{})
	wantLines(t, lines,
		`field=redis.Options.PoolSize value=1`,
		`an account in Redis cannot be used; its requests follow the failure policy" limiter=api cause="reply WRONGTYPE"`,
		`LimitFor gave no valid limit; the limiter's own holds" limiter=api panic=*errors.errorString`,
		`Redis does not answer; limiters follow their failure policy" cause="connection refused"`,
		`a hook panicked" type=string`)
	for _, line := range lines {
		for _, secret := range []string{secretKey, secretPassword, addr, "127.0.0.1"} {
			if strings.Contains(line, secret) {
				t.Errorf("%q is in the log: %s", secret, line)
			}
		}
	}
}

func TestLogsNameKeysAsTheyAreTold(t *testing.T) {
	lines, _ := roughRun(t, Options{LogKey: func(limiter, key string) string {
		return limiter + "/" + key[:3] + "…"
	}})
	wantLines(t, lines, "cause=\"reply WRONGTYPE\" key=api/pat…")
	for _, line := range lines {
		if strings.Contains(line, secretKey) {
			t.Errorf("the whole key is in the log: %s", line)
		}
	}
}

func TestLogKeyMayPanic(t *testing.T) {
	lines, _ := roughRun(t, Options{LogKey: func(_, key string) string { panic("what a key: " + key) }})
	wantLines(t, lines, `key="(LogKey panicked)"`)
	for _, line := range lines {
		if strings.Contains(line, secretKey) {
			t.Errorf("the key is in the log: %s", line)
		}
	}
}

// A client whose every key is poisoned does not fill the log: that is counted.
func TestPoisonedAccountsAreLoggedNowAndThen(t *testing.T) {
	inBubble(t, single(PerSecond(1000)), func(f *fleet) {
		book, logger := newLogBook()
		e := newEvents(&Options{Logger: logger})
		defer e.stop()
		n := &Node{events: e}
		n.opts.Logger = e.logger
		for range 25 * 10 { // 25 s
			for range 10 {
				e.accountPoisoned("api", "k", errors.New("WRONGTYPE"))
			}
			time.Sleep(100 * time.Millisecond)
		}
		if got := e.poisoned.Load(); got != 2500 {
			t.Errorf("%d counted, want 2500", got)
		}
		if got := len(book.lines(n)); got != 5 {
			t.Errorf("%d lines in 25 s, want the first three and one in ten seconds", got)
		}
	})
}

// badHandler is a slog.Handler that is no help.
type badHandler struct{ handle func() }

func (h badHandler) Enabled(context.Context, slog.Level) bool { h.handle(); return true }
func (h badHandler) Handle(context.Context, slog.Record) error {
	h.handle()
	return errors.New("disk full")
}
func (h badHandler) WithAttrs([]slog.Attr) slog.Handler { return h }
func (h badHandler) WithGroup(string) slog.Handler      { return h }

// flapping lets a node of a bad handler lose the store and find it again some
// times, and asks it all the while.
func flapping(t *testing.T, handle func(), after func(f *fleet)) {
	t.Helper()
	setup := single(PerSecond(1000))
	setup.options.Logger = slog.New(badHandler{handle})
	setup.limiter.LimitFor = func(string) (Limit, bool) { panic("no tiers") }
	inBubble(t, setup, func(f *fleet) {
		for range 3 {
			for _, down := range []bool{true, false} {
				f.links[0].Cut(down)
				for range 300 {
					start := time.Now()
					allow(t, f.lims[0], "k", 1)
					if took := time.Since(start); took > 20*time.Millisecond {
						t.Errorf("Allow took %v", took)
					}
					time.Sleep(10 * time.Millisecond)
				}
			}
		}
		if n := f.nodes[0].Stats(); n.StoreDowns != 3 || n.Total.InvalidTiers == 0 {
			t.Errorf("the run was none: %+v", n)
		}
		after(f)
	})
}

func TestLoggersThatPanicCostLinesOnly(t *testing.T) {
	flapping(t, func() { panic("a handler") }, func(f *fleet) {
		if n := f.nodes[0].Stats().LogsDropped; n != 7 {
			t.Errorf("%d lines lost, want 7: three outages, their ends, and LimitFor", n)
		}
	})
}

func TestLoggersThatFailAreCounted(t *testing.T) {
	flapping(t, func() {}, func(f *fleet) {
		if n := f.nodes[0].Stats().LogsDropped; n != 7 {
			t.Errorf("%d lines lost, want 7", n)
		}
	})
}

func TestLoggersThatBlockHoldUpNobody(t *testing.T) {
	stuck := make(chan struct{})
	var release chan struct{}
	flapping(t, func() {
		if release == nil {
			release = make(chan struct{})
			close(stuck)
		}
		<-release
	}, func(f *fleet) {
		<-stuck
		n := f.nodes[0]
		for range 100 {
			n.opts.Logger.Warn("one more")
		}
		if lost := n.Stats().LogsDropped; lost < 100-64 {
			t.Errorf("%d lines lost of 100, with room for 64", lost)
		}
		start := time.Now()
		if err := n.Close(); err != nil {
			t.Errorf("Close: %v", err)
		}
		if took := time.Since(start); took > time.Second {
			t.Errorf("Close took %v", took)
		}
		close(release)
	})
}

// A hook that never returns silences neither the log nor the count of what it
// misses.
func TestHooksThatBlockDoNotSilenceTheLog(t *testing.T) {
	book, logger := newLogBook()
	setup := single(PerSecond(1000))
	setup.options.Logger = logger
	inBubble(t, setup, func(f *fleet) {
		release := make(chan struct{})
		e := newEvents(&Options{Logger: logger, Hooks: Hooks{Store: func(StoreEvent) { <-release }}})
		defer e.stop()
		defer close(release)
		n := &Node{events: e}
		n.opts.Logger = e.logger
		for range eventQueue {
			e.storeChanged(true, nil)
			e.storeChanged(false, nil)
			time.Sleep(time.Millisecond)
		}
		if lost, want := e.dropped.Load(), uint64(eventQueue-1); lost != want {
			t.Errorf("%d events dropped, want %d", lost, want)
		}
		if got := len(book.lines(n)); got != 6 {
			t.Errorf("%d lines, want the first three outages and their ends", got)
		}
	})
}

// slowError is an error of somebody's Dialer, whose text takes its time.
type slowError struct{ release chan struct{} }

func (e slowError) Error() string {
	<-e.release
	return "dial tcp 10.1.2.3:6379: no luck"
}

// Errors come from user code, and their text with them: it is asked for where
// nobody waits, and no handler gets at more than the cause.
func TestErrorsAreReadWhereNobodyWaits(t *testing.T) {
	book, logger := newLogBook()
	e := newEvents(&Options{Logger: logger})
	defer e.stop()
	n := &Node{events: e}
	n.opts.Logger = e.logger
	slow := slowError{make(chan struct{})}
	told := make(chan struct{})
	go func() {
		e.storeChanged(true, slow)
		e.accountPoisoned("api", "k", slow)
		e.unregistered("api", slow)
		close(told)
	}()
	select {
	case <-told:
	case <-time.After(10 * time.Second):
		t.Fatal("who tells waits for the text of the error")
	}
	close(slow.release)
	text := strings.Join(book.lines(n), "\n")
	if strings.Count(text, "cause=hybrid.slowError") != 3 || strings.Contains(text, "10.1.2.3") {
		t.Error(text)
	}
}
