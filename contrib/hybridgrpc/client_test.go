package hybridgrpc

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"

	"github.com/hybridlimit/hybrid"
)

// calling is a client behind a limiter, of an echo server that has none.
func (w *world) calling(l *hybrid.Limiter, opts *ClientOptions) *caller {
	w.t.Helper()
	unary, err := UnaryClient(l, opts)
	if err != nil {
		w.t.Fatal(err)
	}
	stream, err := StreamClient(l, opts)
	if err != nil {
		w.t.Fatal(err)
	}
	return w.connect(nil, grpc.WithChainUnaryInterceptor(unary), grpc.WithChainStreamInterceptor(stream))
}

// A client's calls wait for their turn, so that the downstream sees no more than it
// allows, and in the order in which they came.
func TestClientWaits(t *testing.T) {
	inBubble(t, func(w *world) {
		c := w.calling(w.strict("downstream", hybrid.PerSecond(2)), nil)
		start := time.Now()
		var mu sync.Mutex
		var order []string
		w.echo.say = func(_ context.Context, text string) (string, error) {
			mu.Lock()
			defer mu.Unlock()
			order = append(order, fmt.Sprint(text, " after ", time.Since(start).Round(100*time.Millisecond)))
			return "", nil
		}
		var all sync.WaitGroup
		for i := range 6 {
			all.Go(func() {
				time.Sleep(time.Duration(i) * time.Millisecond)
				if a := c.say(ctx, fmt.Sprint(i)); a.err != nil {
					t.Error(a.err)
				}
			})
		}
		all.Wait()
		want := "[0 after 0s 1 after 0s 2 after 500ms 3 after 1s 4 after 1.5s 5 after 2s]"
		if got := fmt.Sprint(order); got != want {
			t.Errorf("%s, want %s", got, want)
		}
	})
}

// Streams wait before they open; by option also before each message.
func TestClientStreamsWait(t *testing.T) {
	inBubble(t, func(w *world) {
		for name, c := range map[string]struct {
			opts ClientOptions
			took time.Duration // for five streams of one message each
		}{
			"openings": {ClientOptions{}, 3 * time.Second / 2},
			"messages": {ClientOptions{Messages: true}, 8 * time.Second / 2},
			"free":     {ClientOptions{Messages: true, Cost: func(context.Context, Call) int64 { return 0 }}, 0},
			"skipped":  {ClientOptions{Messages: true, Skip: func(_ context.Context, call Call) bool { return call.Method == sum }}, 0},
			"other":    {ClientOptions{Messages: true, Methods: []string{say}}, 0},
		} {
			client, start := w.calling(w.strict(name, hybrid.PerSecond(2)), &c.opts), time.Now()
			for range 5 {
				stream, err := client.open(ctx, sum)
				if err != nil {
					t.Fatal(err)
				}
				if err := stream.send(""); err != nil {
					t.Fatal(err)
				}
				if err := stream.CloseSend(); err != nil {
					t.Fatal(err)
				}
				if n, err := stream.receive(); err != nil || n != "1" {
					t.Fatalf("%q, %v", n, err)
				}
			}
			if took := time.Since(start); took < c.took || took > c.took+50*time.Millisecond {
				t.Errorf("%s: %v, want %v", name, took, c.took)
			}
		}
	})
}

// What cannot pass in time fails at once, and says why: to programs that know gRPC
// and to those that know hybrid.
func TestClientCannotWait(t *testing.T) {
	inBubble(t, func(w *world) {
		bounded, cancel := context.WithTimeout(ctx, 30*time.Second)
		defer cancel()
		l := w.strict("downstream", hybrid.PerMinute(1))
		c := w.calling(l, &ClientOptions{Cost: perByteOrOne})
		if a := c.say(bounded, ""); a.err != nil {
			t.Fatal(a.err)
		}
		start := time.Now()
		a := c.say(bounded, "")
		wantCode(t, a.err, codes.DeadlineExceeded)
		_, err := c.open(bounded, chat)
		wantCode(t, err, codes.DeadlineExceeded)
		if !errors.Is(a.err, context.DeadlineExceeded) || !errors.Is(err, context.DeadlineExceeded) || !strings.Contains(a.err.Error(), `"downstream"`) {
			t.Errorf("%v, %v", a.err, err)
		}
		a = c.say(bounded, "22")
		wantDenied(t, a.err, "downstream")
		if !errors.Is(a.err, hybrid.ErrExceedsBurst) || detailsOf(t, a.err).retry != nil {
			t.Errorf("%v", a.err)
		}
		if took := time.Since(start); took > 100*time.Millisecond || w.echo.ran.Load() != 1 {
			t.Errorf("%v, %d handlers ran", took, w.echo.ran.Load())
		}

		left, leave := context.WithCancel(ctx)
		time.AfterFunc(time.Second, leave)
		a = c.say(left, "")
		wantCode(t, a.err, codes.Canceled)
		if took := time.Since(start); took < time.Second || took > time.Second+100*time.Millisecond {
			t.Errorf("left after %v", took)
		}

		if err := l.Close(); err != nil {
			t.Fatal(err)
		}
		a = c.say(ctx, "")
		wantCode(t, a.err, codes.Unavailable)
		if !errors.Is(a.err, hybrid.ErrClosed) {
			t.Error(a.err)
		}
	})
}

func perByteOrOne(ctx context.Context, call Call) int64 { return max(1, perByte(ctx, call)) }

// Without waiting a client is told what a server would say.
func TestClientNoWait(t *testing.T) {
	inBubble(t, func(w *world) {
		l := w.limiter("downstream", hybrid.PerMinute(2), &hybrid.LimiterOptions{Accuracy: hybrid.Exact, OnFailure: hybrid.FailClosed})
		c := w.calling(l, &ClientOptions{NoWait: true, Cost: perByteOrOne})
		for range 2 {
			if a := c.say(ctx, ""); a.err != nil {
				t.Fatal(a.err)
			}
		}
		if retry := wantDenied(t, c.say(ctx, "").err, "downstream"); retry <= 29*time.Second || retry > 30*time.Second {
			t.Errorf("retry after %v", retry)
		}
		a := c.say(ctx, "333")
		if retry := wantDenied(t, a.err, "downstream"); retry != 0 || !errors.Is(a.err, hybrid.ErrExceedsBurst) {
			t.Errorf("retry after %v of %v", retry, a.err)
		}
		w.breakRedis()
		time.Sleep(31 * time.Second)
		d := detailsOf(t, c.say(ctx, "").err)
		if d.code != codes.Unavailable || d.retry == nil || d.quota != nil {
			t.Errorf("%+v", d)
		}
	})
}

// A message that cannot be sent in time ends the stream, for whoever receives too.
func TestClientMessagesThatCannotWait(t *testing.T) {
	inBubble(t, func(w *world) {
		c := w.calling(w.strict("downstream", hybrid.PerMinute(2)), &ClientOptions{Messages: true})
		bounded, cancel := context.WithTimeout(ctx, 20*time.Second)
		defer cancel()
		stream, err := c.open(bounded, chat)
		if err != nil {
			t.Fatal(err)
		}
		ended := make(chan error, 1)
		go func() {
			var err error
			for err == nil {
				_, err = stream.receive()
			}
			ended <- err
		}()
		start := time.Now()
		if err := stream.send("fits"); err != nil {
			t.Fatal(err)
		}
		wantCode(t, stream.send("does not"), codes.DeadlineExceeded)
		err = <-ended
		wantCode(t, err, codes.DeadlineExceeded)
		if took := time.Since(start); took > 100*time.Millisecond || !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("%v after %v", err, took)
		}
		if _, err := stream.receive(); !errors.Is(err, context.DeadlineExceeded) {
			t.Error(err)
		}
	})
}

// A stream that the server has ended is not waited for: a message that still waits for
// its turn learns of the end.
func TestClientMessageOfAnEndedStream(t *testing.T) {
	inBubble(t, func(w *world) {
		c := w.calling(w.strict("downstream", hybrid.PerMinute(2)), &ClientOptions{Messages: true})
		w.echo.tired = 1
		stream, err := c.open(ctx, chat)
		if err != nil {
			t.Fatal(err)
		}
		if err := stream.send("a"); err != nil {
			t.Fatal(err)
		}
		time.AfterFunc(time.Second, func() {
			for err := error(nil); err == nil; {
				_, err = stream.receive()
			}
		})
		start := time.Now()
		if err := stream.send("b"); !errors.Is(err, io.EOF) {
			t.Errorf("%v, want io.EOF", err)
		}
		if took := time.Since(start); took < time.Second || took > 2*time.Second {
			t.Errorf("after %v", took)
		}
		if err := stream.send("c"); !errors.Is(err, io.EOF) {
			t.Errorf("%v, want io.EOF", err)
		}
	})
}

// Calls are counted by downstream unless they are told otherwise; a call without a
// key does not pass.
func TestClientKeys(t *testing.T) {
	inBubble(t, func(w *world) {
		l := w.strict("downstream", hybrid.PerHour(5))
		c := w.calling(l, nil)
		for range 2 {
			if a := c.say(ctx, ""); a.err != nil {
				t.Fatal(a.err)
			}
		}
		if res, err := l.Peek(ctx, "passthrough:///echo"); err != nil || res.Remaining != 3 {
			t.Errorf("%+v, %v", res, err)
		}
		byMethod := w.calling(l, &ClientOptions{Key: Join(Target(), Method()), NoWait: true})
		if a := byMethod.say(ctx, ""); a.err != nil {
			t.Fatal(a.err)
		}
		if res, err := l.Peek(ctx, "19:passthrough:///echo"+say); err != nil || res.Remaining != 4 {
			t.Errorf("%+v, %v", res, err)
		}

		// In a server, a key is that of the call which is served.
		byUser := w.calling(l, &ClientOptions{Key: Metadata("user"), NoKey: codes.Unauthenticated, Messages: true})
		served := metadata.NewIncomingContext(ctx, metadata.Pairs("user", "ann"))
		if a := byUser.say(served, ""); a.err != nil {
			t.Fatal(a.err)
		}
		if res, err := l.Peek(ctx, "ann"); err != nil || res.Remaining != 4 {
			t.Errorf("%+v, %v", res, err)
		}
		wantCode(t, byUser.say(ctx, "").err, codes.Unauthenticated)
		_, err := byUser.open(ctx, chat)
		wantCode(t, err, codes.Unauthenticated)
	})
}
