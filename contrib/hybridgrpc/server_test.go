package hybridgrpc

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/hybridlimit/hybrid"
	"github.com/hybridlimit/hybrid/httplimit"
)

// The client is told what is left, then which limit it has exceeded and when to come
// back; and the server's handler runs for what passes alone.
func TestDenialSaysWhyAndUntilWhen(t *testing.T) {
	inBubble(t, func(w *world) {
		c := w.serve(w.strict("api", hybrid.PerMinute(2)), &ServerOptions{Key: Metadata("X-API-Key")})
		for left := range 2 {
			a := c.say(with("x-api-key", "secret"), "hello")
			if a.err != nil || a.text != "hello" {
				t.Fatalf("%q, %v", a.text, a.err)
			}
			wantFields(t, a.trailer, "x-ratelimit-limit", "2", "x-ratelimit-remaining", fmt.Sprint(1-left), "retry-after", "", "grpc-retry-pushback-ms", "")
			wantFields(t, a.header, "x-ratelimit-limit", "")
		}
		a := c.say(with("x-api-key", "secret"), "hello")
		retry := wantDenied(t, a.err, "api")
		if retry <= 29*time.Second || retry > 30*time.Second || retry%time.Millisecond != 0 {
			t.Errorf("retry after %v, want 30 s less what has passed", retry)
		}
		wantFields(t, a.trailer, "x-ratelimit-limit", "2", "x-ratelimit-remaining", "0", "x-ratelimit-reset", "60",
			"retry-after", "30", "grpc-retry-pushback-ms", fmt.Sprint(retry.Milliseconds()))
		if all := fmt.Sprint(a.trailer, a.err, status.Convert(a.err).Proto()); strings.Contains(all, "secret") {
			t.Errorf("the key is shown: %s", all)
		}
		if n := w.echo.ran.Load(); n != 2 {
			t.Errorf("the handler ran %d times", n)
		}

		// Somebody else's budget is untouched, and the wait was the right one.
		if a := c.say(with("x-api-key", "other"), ""); a.err != nil {
			t.Error(a.err)
		}
		time.Sleep(retry - 10*time.Millisecond)
		wantDenied(t, c.say(with("x-api-key", "secret"), "").err, "api")
		time.Sleep(10 * time.Millisecond)
		if a := c.say(with("x-api-key", "secret"), ""); a.err != nil {
			t.Error(a.err)
		}
	})
}

// No wait helps a call that costs more than there ever is: it is told none, and its
// client not to retry.
func TestDenialForever(t *testing.T) {
	inBubble(t, func(w *world) {
		cost := func(_ context.Context, call Call) int64 {
			return int64(len(call.Request.(*wrapperspb.StringValue).Value))
		}
		c := w.serve(w.strict("bytes", hybrid.PerMinute(5)), &ServerOptions{Cost: cost})
		a := c.say(ctx, "123456")
		d := detailsOf(t, a.err)
		wantDenied(t, a.err, "bytes")
		if d.retry != nil || !strings.Contains(d.message, "never") {
			t.Errorf("%v, %v", d.retry, d.message)
		}
		wantFields(t, a.trailer, "retry-after", "", "grpc-retry-pushback-ms", "-1", "x-ratelimit-limit", "5")
		wantFields(t, c.say(ctx, "12345").trailer, "x-ratelimit-remaining", "0")
		wantFields(t, c.say(ctx, "").trailer, "x-ratelimit-remaining", "") // free
	})
}

// While Redis does not answer, a limit that fails closed is unavailable: nobody has
// exceeded anything.
func TestFailClosed(t *testing.T) {
	inBubble(t, func(w *world) {
		l := w.limiter("login", hybrid.PerMinute(5), &hybrid.LimiterOptions{Accuracy: hybrid.Exact, OnFailure: hybrid.FailClosed})
		var told Decision
		c := w.serve(l, &ServerOptions{Deny: func(_ context.Context, d Decision) error { told = d; return nil }})
		w.breakRedis()
		a := c.say(ctx, "")
		d := detailsOf(t, a.err)
		if d.code != codes.Unavailable || d.quota != nil || d.retry == nil || d.retry.RetryDelay.AsDuration() != time.Second {
			t.Errorf("%+v", d)
		}
		wantFields(t, a.trailer, "retry-after", "1", "grpc-retry-pushback-ms", "1000")
		if told.Code != codes.Unavailable || told.Result.Path != hybrid.PathFallback {
			t.Errorf("%+v", told)
		}
		cs, err := c.open(ctx, chat)
		if err == nil {
			_, err = cs.receive()
		}
		wantCode(t, err, codes.Unavailable)
		w.mendRedis()
		time.Sleep(2 * time.Second)
		if a := c.say(ctx, ""); a.err != nil {
			t.Error(a.err)
		}
	})
}

// A denial by FailLocal is for what its client has used, also where the next token
// comes when Redis is asked again.
func TestFailLocalIsNotUnavailable(t *testing.T) {
	inBubble(t, func(w *world) {
		var told Decision
		c := w.serve(w.strict("local", hybrid.PerSecond(1)), &ServerOptions{
			Key:  Metadata("key"),
			Deny: func(_ context.Context, d Decision) error { told = d; return nil },
		})
		w.breakRedis()
		for _, key := range []string{"a", "b", "c", "d", "e"} { // until nobody waits for Redis
			if a := c.say(with("key", key), ""); a.err != nil {
				t.Fatal(a.err)
			}
		}
		time.Sleep(time.Nanosecond) // waits are rounded up by one
		if wait := wantDenied(t, c.say(with("key", "e"), "").err, "local"); wait != time.Second {
			t.Errorf("retry after %v, want just what a probe of Redis takes", wait)
		}
		if r := told.Result; r.Path != hybrid.PathFallback || told.Code != codes.ResourceExhausted {
			t.Errorf("%+v, want a denial by the failure policy for what was used", told)
		}
	})
}

// A call is checked by all limits or charged by none, and the one that denies is
// named.
func TestSeveralLimits(t *testing.T) {
	inBubble(t, func(w *world) {
		user, tenant := w.strict("user", hybrid.PerHour(3)), w.strict("tenant", hybrid.PerHour(4))
		c := w.serve(user, &ServerOptions{
			Key:  Metadata("user"),
			More: []Check{{Limiter: tenant, Key: Metadata("tenant"), Name: "the tenant's"}},
		})
		call := func(user string) answer { return c.say(with("user", user, "tenant", "acme"), "") }
		for range 3 {
			if a := call("ann"); a.err != nil {
				t.Fatal(a.err)
			}
		}
		a := call("ann")
		wantDenied(t, a.err, "user")
		wantFields(t, a.trailer, "x-ratelimit-limit", "3")
		wantFields(t, call("bob").trailer, "x-ratelimit-limit", "4", "x-ratelimit-remaining", "0") // the tightest
		a = call("bob")
		wantDenied(t, a.err, "the tenant's")
		wantFields(t, a.trailer, "x-ratelimit-limit", "4")
		for key, want := range map[string]int64{"ann": 0, "bob": 2} { // the tenant's denial was free for bob
			if res, err := user.Peek(ctx, key); err != nil || res.Remaining != want {
				t.Errorf("%s has %d left, %v, want %d", key, res.Remaining, err, want)
			}
		}
	})
}

// A limit in shadow mode refuses nobody and says whom it would have.
func TestShadow(t *testing.T) {
	inBubble(t, func(w *world) {
		var told []Decision
		l := w.limiter("api", hybrid.PerHour(1), &hybrid.LimiterOptions{Accuracy: hybrid.Strict, Shadow: true})
		c := w.serve(l, &ServerOptions{Decided: func(_ context.Context, d Decision) { told = append(told, d) }})
		for range 2 {
			if a := c.say(ctx, ""); a.err != nil {
				t.Fatal(a.err)
			}
		}
		if len(told) != 2 || told[0].Result.Shadowed || !told[1].Result.Shadowed {
			t.Fatalf("%+v", told)
		}
		if d := told[1]; d.Method != say || d.Key != "203.0.113.9" || d.Name != "api" || d.Code != codes.OK || d.Limiter != l {
			t.Errorf("%+v", d)
		}
	})
}

// Nor does a tighter limit hide what a trial would have denied.
func TestShadowBesideALimitThatIsEnforced(t *testing.T) {
	inBubble(t, func(w *world) {
		trial := w.limiter("trial", hybrid.PerHour(100), &hybrid.LimiterOptions{Accuracy: hybrid.Strict, Shadow: true})
		told := 0
		c := w.serve(w.strict("enforced", hybrid.PerHour(8)), &ServerOptions{
			More: []Check{{Limiter: trial, Cost: func(context.Context, Call) int64 { return 60 }}},
			Decided: func(_ context.Context, d Decision) {
				if !d.Result.Shadowed {
					return
				}
				if told++; d.Limiter != trial || d.Name != "trial" {
					t.Errorf("told %+v", d)
				}
			},
		})
		for range 8 {
			if a := c.say(ctx, ""); a.err != nil {
				t.Fatal(a.err)
			}
		}
		wantDenied(t, c.say(ctx, "").err, "enforced")
		if counted := w.node.Stats().Limiters["trial"].Shadowed; told != 7 || counted != 7 {
			t.Errorf("told of %d calls, counted %d; want 7", told, counted)
		}
	})
}

// Each decision is told once, before the handler runs or Deny is asked: whoever made
// it, and however it turned out. What was not decided is not told.
func TestDecided(t *testing.T) {
	inBubble(t, func(w *world) {
		var log []string
		told := func(_ context.Context, d Decision) {
			log = append(log, fmt.Sprint("decided ", d.Name, " ", d.Key, " ", d.Code, " ", d.Result.Path))
		}
		w.echo.say = func(_ context.Context, text string) (string, error) {
			log = append(log, "handled "+text)
			return text, nil
		}
		exact := func(name string, p hybrid.FailurePolicy) *hybrid.Limiter {
			return w.limiter(name, hybrid.PerHour(1), &hybrid.LimiterOptions{Accuracy: hybrid.Exact, OnFailure: p})
		}
		cost := int64(1)
		opts := &ServerOptions{
			Key:     Metadata("x-key"),
			Skip:    func(_ context.Context, call Call) bool { return call.Request.(*wrapperspb.StringValue).Value == "skip" },
			Cost:    func(context.Context, Call) int64 { return cost },
			Deny:    func(context.Context, Decision) error { log = append(log, "denied"); return nil },
			Decided: told,
		}
		c := w.serve(exact("api", hybrid.FailOpen), opts)
		ann := with("x-key", "ann")
		c.say(ann, "1")
		c.say(ann, "2")
		c.say(ctx, "no key")
		c.say(ann, "skip")
		cost = 0
		c.say(ann, "free")
		cost = 1
		closed := w.serve(exact("closed", hybrid.FailClosed), opts)
		w.breakRedis()
		c.say(with("x-key", "bob"), "3")
		closed.say(ann, "4")
		want := []string{
			"decided api ann OK exact", "handled 1",
			"decided api ann ResourceExhausted exact", "denied",
			"handled skip",
			"handled free",
			"decided api bob OK fallback", "handled 3",
			"decided closed ann Unavailable fallback", "denied",
		}
		if !slices.Equal(log, want) {
			t.Errorf("%q, want %q", log, want)
		}
	})
}

// What is skipped, free or of another method passes, and shows no limit.
func TestWhatIsNotLimited(t *testing.T) {
	inBubble(t, func(w *world) {
		for name, opts := range map[string]*ServerOptions{
			"skipped":    {Skip: func(_ context.Context, call Call) bool { return call.Method == say }},
			"free":       {Cost: func(context.Context, Call) int64 { return 0 }},
			"a method":   {Methods: []string{chat}},
			"a service":  {Methods: []string{"/test.Other/*", "/test.EchoTwo/*"}},
			"all free":   {Cost: func(context.Context, Call) int64 { return 0 }, More: []Check{{Limiter: w.strict("more", hybrid.PerHour(0))}}},
			"no methods": {Methods: []string{"/test.Echo/Sa", "/test.Echo/Say2"}},
		} {
			a := w.serve(w.strict(name, hybrid.PerHour(0)), opts).say(ctx, "")
			if a.err != nil {
				t.Errorf("%s: %v", name, a.err)
			}
			wantFields(t, a.trailer, "x-ratelimit-limit", "")
		}
		for name, methods := range map[string][]string{"this": {chat, say}, "its service": {"/test.Echo/*"}} {
			a := w.serve(w.strict(name, hybrid.PerHour(0)), &ServerOptions{Methods: methods}).say(ctx, "")
			wantDenied(t, a.err, name)
		}
	})
}

// Who sends no key, or two, has none; and is not counted with others who have none.
func TestNoKey(t *testing.T) {
	inBubble(t, func(w *world) {
		opts := &ServerOptions{Key: Metadata("x-api-key")}
		c := w.serve(w.strict("api", hybrid.PerHour(1)), opts)
		own := w.serve(w.strict("own", hybrid.PerHour(1)), &ServerOptions{Key: opts.Key, NoKey: codes.Unauthenticated})
		for range 3 {
			for _, call := range []context.Context{ctx, with("x-api-key", ""), with("x-api-key", "a", "x-api-key", "b"), with("x-api-key", strings.Repeat("k", 65<<10))} {
				a := c.say(call, "")
				if d := detailsOf(t, a.err); d.code != codes.InvalidArgument || d.retry != nil || d.quota != nil {
					t.Errorf("%+v", d)
				}
				wantFields(t, a.trailer, "x-ratelimit-limit", "", "grpc-retry-pushback-ms", "")
				wantCode(t, own.say(call, "").err, codes.Unauthenticated)
				stream, err := c.open(call, chat)
				if err == nil {
					_, err = stream.receive()
				}
				wantCode(t, err, codes.InvalidArgument)
			}
		}
		if n := w.echo.ran.Load(); n != 0 {
			t.Errorf("the handler ran %d times", n)
		}
		if a := c.say(with("x-api-key", "k"), ""); a.err != nil {
			t.Error(a.err)
		}
	})
}

// The functions of a program decide what its clients are told; what they leave out has
// the default.
func TestOwnErrors(t *testing.T) {
	inBubble(t, func(w *world) {
		var cause error
		c := w.serve(w.strict("api", hybrid.PerHour(1)), &ServerOptions{
			Key: KeyFunc(func(ctx context.Context, call Call) (string, error) {
				return "", errors.New("the database of " + call.Method)
			}),
			Failure: func(_ context.Context, err error) error {
				cause = err
				return status.Error(codes.PermissionDenied, "who?")
			},
		})
		wantCode(t, c.say(ctx, "").err, codes.PermissionDenied)
		if !errors.Is(cause, ErrNoKey) || !strings.Contains(cause.Error(), "the database of "+say) {
			t.Errorf("%v", cause)
		}

		left := w.strict("left", hybrid.PerHour(1))
		d := w.serve(left, &ServerOptions{
			Key:     Metadata("user"),
			Failure: func(context.Context, error) error { return nil },
			Subject: func(d Decision) string { return d.Limiter.Name() + " of " + d.Key },
			Deny: func(_ context.Context, d Decision) error {
				if d.Key == "bob" {
					return status.Error(codes.Aborted, "not you")
				}
				return nil
			},
		})
		wantCode(t, d.say(ctx, "").err, codes.InvalidArgument)
		for _, user := range []string{"ann", "bob"} {
			if a := d.say(with("user", user), ""); a.err != nil {
				t.Fatal(a.err)
			}
		}
		wantDenied(t, d.say(with("user", "ann"), "").err, "left of ann")
		a := d.say(with("user", "bob"), "")
		wantCode(t, a.err, codes.Aborted)
		wantFields(t, a.trailer, "retry-after", "3600")
	})
}

// Names and keys may be any bytes; what goes over the network cannot.
func TestNamesOfAnyBytes(t *testing.T) {
	inBubble(t, func(w *world) {
		name := "\xff\x00\n" + strings.Repeat("n", 253)
		c := w.serve(w.strict(name, hybrid.PerHour(0)), &ServerOptions{Subject: func(Decision) string { return name + name }})
		d := detailsOf(t, c.say(ctx, "").err)
		if d.quota == nil || !strings.HasPrefix(d.quota.Violations[0].Subject, "\uFFFD\x00\nnnn") || len(d.quota.Violations[0].Subject) > 260 {
			t.Errorf("%v", d.quota)
		}
		if size := proto.Size(d.quota); size > 1024 {
			t.Errorf("%d bytes of details", size)
		}
	})
}

// What a limiter cannot decide has a code of its own. The error knows its cause in this
// process, for interceptors around this one.
func TestUndecided(t *testing.T) {
	inBubble(t, func(w *world) {
		over, cancel := context.WithCancel(ctx)
		cancel()
		late, cancelLate := context.WithDeadline(ctx, time.Now().Add(-time.Second))
		defer cancelLate()
		closed := w.strict("closed", hybrid.PerHour(1))
		if err := closed.Close(); err != nil {
			t.Fatal(err)
		}
		open := w.limiter("open", hybrid.PerHour(100), &hybrid.LimiterOptions{Accuracy: hybrid.Exact})
		negative := func(context.Context, Call) int64 { return -1 }
		for _, c := range []struct {
			name  string
			ctx   context.Context
			l     *hybrid.Limiter
			opts  ServerOptions
			code  codes.Code
			cause error
		}{
			{"left", over, open, ServerOptions{}, codes.Canceled, context.Canceled},
			{"late", late, open, ServerOptions{}, codes.DeadlineExceeded, context.DeadlineExceeded},
			{"closed", ctx, closed, ServerOptions{}, codes.Unavailable, hybrid.ErrClosed},
			{"negative", ctx, open, ServerOptions{Cost: negative}, codes.Internal, hybrid.ErrInvalidCost},
			{"negative among several", ctx, open, ServerOptions{More: []Check{{Limiter: open, Cost: negative}}}, codes.Internal, hybrid.ErrInvalidCost},
			{"no key", ctx, open, ServerOptions{Key: Value(w)}, codes.InvalidArgument, ErrNoKey},
		} {
			if c.opts.Key.isZero() {
				c.opts.Key = Fixed("k")
			}
			unary, err := UnaryServer(c.l, &c.opts)
			if err != nil {
				t.Fatal(err)
			}
			_, err = unary(c.ctx, nil, &grpc.UnaryServerInfo{FullMethod: say}, func(context.Context, any) (any, error) {
				t.Errorf("%s: the handler runs", c.name)
				return nil, nil
			})
			if status.Code(err) != c.code || !errors.Is(err, c.cause) {
				t.Errorf("%s: %v, want %v of %v", c.name, err, c.code, c.cause)
			}
			if d := detailsOf(t, err); (d.retry != nil) != (c.code == codes.Unavailable) {
				t.Errorf("%s: %v", c.name, d.retry)
			}
		}
	})
}

// In the header, the fields reach the client of a stream before its first message, and
// denials stay in the trailer.
func TestInHeader(t *testing.T) {
	inBubble(t, func(w *world) {
		c := w.serve(w.strict("api", hybrid.PerHour(2)), &ServerOptions{InHeader: true, Headers: httplimit.IETF})
		stream, err := c.open(ctx, chat)
		if err != nil {
			t.Fatal(err)
		}
		if err := stream.send("a"); err != nil {
			t.Fatal(err)
		}
		header, err := stream.Header()
		if err != nil {
			t.Fatal(err)
		}
		wantFields(t, header, "ratelimit", `"api";r=1;t=1800`, "ratelimit-policy", `"api";q=2;w=3600`)
		a := c.say(ctx, "")
		wantFields(t, a.header, "ratelimit", `"api";r=0;t=1800`)
		wantFields(t, a.trailer, "ratelimit", "")
		a = c.say(ctx, "")
		wantDenied(t, a.err, "api")
		wantFields(t, a.trailer, "ratelimit", `"api";r=0;t=1800`, "retry-after", "1800", "grpc-retry-pushback-ms", "-1") // longer than a minute
		quiet := w.serve(w.strict("quiet", hybrid.PerHour(1)), &ServerOptions{InHeader: true, Headers: httplimit.NoHeaders})
		if a := quiet.say(ctx, ""); a.err != nil || len(limitFields(a.header))+len(limitFields(a.trailer)) != 0 {
			t.Errorf("%v, %v, %v", a.err, a.header, a.trailer)
		}
		if md := limitFields(quiet.say(ctx, "").trailer); len(md) != 2 || md["retry-after"] == nil || md["grpc-retry-pushback-ms"] == nil {
			t.Errorf("%v", md)
		}
	})
}

// limitFields are those of an answer that are ours.
func limitFields(md metadata.MD) metadata.MD {
	ours := metadata.MD{}
	for name, values := range md {
		if strings.Contains(name, "ratelimit") || name == fieldRetry || name == fieldPushback {
			ours[name] = values
		}
	}
	return ours
}
