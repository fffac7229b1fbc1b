package hybridgrpc

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/hybridlimit/hybrid"
)

// retries is a client's policy: it would come back after milliseconds on its own.
const retries = `{"methodConfig": [{"name": [{}], "retryPolicy": {
	"maxAttempts": 5, "initialBackoff": "0.001s", "maxBackoff": "0.002s", "backoffMultiplier": 1,
	"retryableStatusCodes": ["RESOURCE_EXHAUSTED", "UNAVAILABLE"]}}]}`

func retrying() grpc.DialOption { return grpc.WithDefaultServiceConfig(retries) }

// counted counts the denials of a server.
func counted(denials *atomic.Int64, opts ServerOptions) *ServerOptions {
	opts.Deny = func(context.Context, Decision) error {
		denials.Add(1)
		return nil
	}
	return &opts
}

// gRPC's own client waits as long as a denial says, and no longer, and its first retry
// passes. The program sees a call that takes a while.
func TestRetryPolicyWaitsAsTold(t *testing.T) {
	inBubble(t, func(w *world) {
		var denials atomic.Int64
		c := w.serve(w.strict("api", hybrid.Per(2, 14*time.Second)), counted(&denials, ServerOptions{}), retrying())
		start := time.Now()
		for i := range 5 {
			if a := c.say(ctx, "hello"); a.err != nil || a.text != "hello" {
				t.Fatalf("call %d after %v: %v", i, time.Since(start), a.err)
			}
			want := time.Duration(max(0, i-1)) * 7 * time.Second
			if took := time.Since(start); took < want || took > want+50*time.Millisecond {
				t.Errorf("call %d passed after %v, want %v", i, took, want)
			}
		}
		if n := denials.Load(); n != 3 {
			t.Errorf("%d denials for three calls that came early", n)
		}
	})
}

// So it does with streams, which a denial ends before the handler runs: what was sent is
// sent again.
func TestRetryPolicyOpensStreamsAgain(t *testing.T) {
	inBubble(t, func(w *world) {
		var denials atomic.Int64
		c := w.serve(w.strict("api", hybrid.Per(1, 5*time.Second)), counted(&denials, ServerOptions{}), retrying())
		start := time.Now()
		for i := range 3 {
			stream, err := c.open(ctx, chat)
			if err != nil {
				t.Fatal(err)
			}
			if err := stream.send(fmt.Sprint(i)); err != nil {
				t.Fatal(err)
			}
			if got, err := stream.receive(); err != nil || got != fmt.Sprint(i) {
				t.Fatalf("%q, %v", got, err)
			}
		}
		if took := time.Since(start); took < 10*time.Second || took > 10*time.Second+50*time.Millisecond || denials.Load() != 2 {
			t.Errorf("%v, %d denials", took, denials.Load())
		}
	})
}

// A retry that would be in vain is not made: the program has the status at once.
func TestRetryPolicyGivesUpAtOnce(t *testing.T) {
	inBubble(t, func(w *world) {
		bounded, cancel := context.WithTimeout(ctx, 5*time.Second)
		defer cancel()
		three := func(context.Context, Call) int64 { return 3 }
		for name, c := range map[string]struct {
			ctx   context.Context
			limit hybrid.Limit
			opts  ServerOptions
		}{
			"the deadline comes before": {bounded, hybrid.Per(1, 10*time.Second), ServerOptions{}},
			"never":                     {ctx, hybrid.Per(2, time.Second), ServerOptions{Cost: three}},
			"a limit of nothing":        {ctx, hybrid.PerSecond(0), ServerOptions{}},
			"an hour":                   {ctx, hybrid.PerHour(1), ServerOptions{}},
			"longer than is asked for":  {ctx, hybrid.Per(1, 10*time.Second), ServerOptions{LongestPushback: 9 * time.Second}},
		} {
			var denials atomic.Int64
			l := w.strict(name, c.limit)
			client := w.serve(l, counted(&denials, c.opts), retrying())
			if c.limit.Count() == 1 {
				if a := client.say(c.ctx, ""); a.err != nil {
					t.Fatal(a.err)
				}
			}
			start := time.Now()
			wantDenied(t, client.say(c.ctx, "").err, name)
			if took := time.Since(start); took > 100*time.Millisecond || denials.Load() != 1 {
				t.Errorf("%s: %v, %d denials", name, took, denials.Load())
			}
		}
	})
}

// A longer wait than a minute is asked for where that is wanted.
func TestLongestPushback(t *testing.T) {
	inBubble(t, func(w *world) {
		c := w.serve(w.strict("api", hybrid.Per(1, 90*time.Second)), &ServerOptions{LongestPushback: 2 * time.Minute}, retrying())
		start := time.Now()
		for range 2 {
			if a := c.say(ctx, ""); a.err != nil {
				t.Fatal(a.err)
			}
		}
		if took := time.Since(start); took < 90*time.Second || took > 91*time.Second {
			t.Errorf("%v", took)
		}
	})
}

// While Redis does not answer, a limit that fails closed is asked once a second, and the
// call passes when Redis is back.
func TestRetryPolicyOutlastsAnOutage(t *testing.T) {
	inBubble(t, func(w *world) {
		var denials atomic.Int64
		l := w.limiter("login", hybrid.PerMinute(5), &hybrid.LimiterOptions{Accuracy: hybrid.Exact, OnFailure: hybrid.FailClosed})
		c := w.serve(l, counted(&denials, ServerOptions{}), retrying())
		w.breakRedis()
		time.AfterFunc(1500*time.Millisecond, w.mendRedis)
		start := time.Now()
		a := c.say(ctx, "")
		if took := time.Since(start); a.err != nil || took < 2*time.Second || took > 5*time.Second || denials.Load() < 2 {
			t.Errorf("%v after %v, %d denials", a.err, took, denials.Load())
		}
	})
}

// The fields of calls that pass leave a handler's own failures to be retried as they
// were, and in the header they do not: that is why they are in the trailer.
func TestFieldsAndRetriesOfHandlers(t *testing.T) {
	inBubble(t, func(w *world) {
		for name, c := range map[string]struct {
			opts ServerOptions
			runs int64
		}{
			"trailer": {ServerOptions{}, 2},
			"header":  {ServerOptions{InHeader: true}, 1},
		} {
			var runs atomic.Int64
			w.echo.say = func(context.Context, string) (string, error) {
				if runs.Add(1) == 1 {
					return "", status.Error(codes.Unavailable, "the handler's")
				}
				return "done", nil
			}
			a := w.serve(w.strict(name, hybrid.PerHour(100)), &c.opts, retrying()).say(ctx, "")
			if runs.Load() != c.runs || (a.err == nil) != (c.runs == 2) {
				t.Errorf("%s: %d runs, %q, %v", name, runs.Load(), a.text, a.err)
			}
		}
	})
}
