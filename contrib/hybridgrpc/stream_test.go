package hybridgrpc

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/hybridlimit/hybrid"
)

// perByte charges messages by what is in them, and nothing for the opening.
func perByte(_ context.Context, call Call) int64 {
	if m, ok := call.Request.(*wrapperspb.StringValue); ok {
		return int64(len(m.Value))
	}
	return 0
}

// A stream is charged when it opens, of any kind, and its messages are free.
func TestStreamOpens(t *testing.T) {
	inBubble(t, func(w *world) {
		c := w.serve(w.strict("api", hybrid.PerMinute(3)), nil)
		for _, method := range []string{chat, list, sum} {
			stream, err := c.open(ctx, method)
			if err != nil {
				t.Fatal(err)
			}
			if err := stream.send("a"); err != nil {
				t.Fatal(err)
			}
			if err := stream.CloseSend(); err != nil {
				t.Fatal(err)
			}
			for err == nil {
				_, err = stream.receive()
				if method == sum && err == nil {
					break
				}
			}
			if err != nil && !errors.Is(err, io.EOF) {
				t.Errorf("%s: %v", method, err)
			}
			wantFields(t, stream.Trailer(), "x-ratelimit-limit", "3")
		}
		stream, err := c.open(ctx, chat)
		if err != nil {
			t.Fatal(err)
		}
		_, err = stream.receive()
		if retry := wantDenied(t, err, "api"); retry <= 19*time.Second || retry > 20*time.Second {
			t.Errorf("retry after %v", retry)
		}
		wantFields(t, stream.Trailer(), "retry-after", "20", "x-ratelimit-remaining", "0")
		if n := w.echo.ran.Load(); n != 3 {
			t.Errorf("%d handlers ran", n)
		}
	})
}

// Messages are charged by their cost until one does not fit: it is not heard, and the
// stream ends with the denial. It is not sent again by a retry, which would charge what
// had passed again.
func TestMessagesDenied(t *testing.T) {
	inBubble(t, func(w *world) {
		for name, inHeader := range map[string]bool{"trailer": false, "header": true} {
			l := w.strict(name, hybrid.PerMinute(10))
			c := w.serve(l, &ServerOptions{Cost: perByte, Messages: DenyMessages, InHeader: inHeader})
			stream, err := c.open(ctx, chat)
			if err != nil {
				t.Fatal(err)
			}
			for _, text := range []string{"four", "", "five5"} {
				if err := stream.send(text); err != nil {
					t.Fatal(err)
				}
				if got, err := stream.receive(); err != nil || got != text {
					t.Fatalf("%q, %v", got, err)
				}
			}
			if err := stream.send("6ssss6"); err != nil {
				t.Fatal(err)
			}
			_, err = stream.receive()
			if retry := wantDenied(t, err, name); retry <= 29*time.Second || retry > 30*time.Second {
				t.Errorf("retry after %v", retry)
			}
			wantFields(t, stream.Trailer(), "x-ratelimit-limit", "10", "x-ratelimit-remaining", "1", "grpc-retry-pushback-ms", "-1", "retry-after", "30")
		}
	})
}

// A handler that goes on after a denial hears no more.
func TestDeniedMessageStays(t *testing.T) {
	inBubble(t, func(w *world) {
		under := &fakeStream{messages: 100}
		s, err := newServer(w.strict("api", hybrid.PerMinute(3)), &ServerOptions{Key: Fixed("k"), Messages: DenyMessages})
		if err != nil {
			t.Fatal(err)
		}
		heard, denials := 0, 0
		err = s.stream(nil, under, &grpc.StreamServerInfo{FullMethod: chat}, func(_ any, ss grpc.ServerStream) error {
			for range 10 {
				switch err := ss.RecvMsg(nil); {
				case err == nil:
					heard++
				case status.Code(err) == codes.ResourceExhausted:
					denials++
					time.Sleep(20 * time.Second) // in which another one would fit
				}
			}
			return nil
		})
		if err != nil || heard != 2 || denials != 8 || under.received != 3 {
			t.Errorf("%v: %d heard, %d denied, %d received", err, heard, denials, under.received)
		}
	})
}

// A stream to the client has one message from it, which knows what the call is about.
func TestRequestOfAListIsCharged(t *testing.T) {
	inBubble(t, func(w *world) {
		c := w.serve(w.strict("rows", hybrid.PerMinute(10)), &ServerOptions{Cost: perByte, Messages: DenyMessages})
		for i, want := range []string{"6", "1", "1"} {
			stream, err := c.open(ctx, list)
			if err != nil {
				t.Fatal(err)
			}
			if err := stream.send([]string{"four", "five5", "66"}[i]); err != nil {
				t.Fatal(err)
			}
			for err == nil {
				_, err = stream.receive()
			}
			if denied := i == 2; denied {
				wantDenied(t, err, "rows")
			} else if !errors.Is(err, io.EOF) {
				t.Error(err)
			}
			wantFields(t, stream.Trailer(), "x-ratelimit-remaining", want)
		}
	})
}

// Messages that wait pass at the limit's rate; none is lost, and none is early.
func TestMessagesWait(t *testing.T) {
	inBubble(t, func(w *world) {
		c := w.serve(w.strict("chat", hybrid.PerSecond(2)), &ServerOptions{Messages: WaitMessages})
		start := time.Now()
		stream, err := c.open(ctx, chat)
		if err != nil {
			t.Fatal(err)
		}
		for i := range 9 { // with the opening ten
			if err := stream.send(fmt.Sprint(i)); err != nil {
				t.Fatal(err)
			}
		}
		if err := stream.CloseSend(); err != nil {
			t.Fatal(err)
		}
		for i := range 9 {
			got, err := stream.receive()
			if err != nil || got != fmt.Sprint(i) {
				t.Fatalf("message %d: %q, %v", i, got, err)
			}
			tokens := i + 2 // so many were needed, two were there
			if early, late := time.Duration(tokens-2)*time.Second/2, time.Duration(tokens-2)*time.Second/2+50*time.Millisecond; time.Since(start) < early || time.Since(start) > late {
				t.Errorf("message %d after %v, want %v to %v", i, time.Since(start), early, late)
			}
		}
		if _, err := stream.receive(); !errors.Is(err, io.EOF) {
			t.Error(err)
		}
		wantFields(t, stream.Trailer(), "x-ratelimit-limit", "2", "x-ratelimit-remaining", "1") // the opening's: a wait tells nothing
	})
}

// A message that never fits is denied, and one whose turn comes after the stream's
// deadline ends the stream at once.
func TestMessagesThatCannotWait(t *testing.T) {
	inBubble(t, func(w *world) {
		c := w.serve(w.strict("bytes", hybrid.PerMinute(5)), &ServerOptions{Cost: perByte, Messages: WaitMessages})
		stream, err := c.open(ctx, chat)
		if err != nil {
			t.Fatal(err)
		}
		if err := stream.send("123456"); err != nil {
			t.Fatal(err)
		}
		_, err = stream.receive()
		wantDenied(t, err, "bytes")
		wantFields(t, stream.Trailer(), "grpc-retry-pushback-ms", "-1", "retry-after", "")

		bounded, cancel := context.WithTimeout(ctx, 30*time.Second)
		defer cancel()
		start := time.Now()
		if stream, err = c.open(bounded, chat); err != nil {
			t.Fatal(err)
		}
		for range 2 {
			if err := stream.send("12345"); err != nil {
				t.Fatal(err)
			}
		}
		if got, err := stream.receive(); err != nil || got != "12345" {
			t.Fatalf("%q, %v", got, err)
		}
		_, err = stream.receive()
		wantCode(t, err, codes.DeadlineExceeded)
		if time.Since(start) > time.Second {
			t.Errorf("after %v", time.Since(start))
		}
	})
}

// Of a stream its opening is told, and each message that is charged; not those whose
// wait says no more than that they pass.
func TestDecidedOfStreams(t *testing.T) {
	for mode, want := range map[Messages]string{FreeMessages: "OK", DenyMessages: "OK OK OK ResourceExhausted", WaitMessages: "OK"} {
		inBubble(t, func(w *world) {
			var told []string
			c := w.serve(w.strict("chat", hybrid.PerHour(3)), &ServerOptions{Messages: mode, Decided: func(_ context.Context, d Decision) {
				told = append(told, d.Code.String())
			}})
			bounded, cancel := context.WithTimeout(ctx, time.Second)
			defer cancel()
			stream, err := c.open(bounded, chat)
			if err != nil {
				t.Fatal(err)
			}
			for range 3 { // the last one does not fit
				if err := stream.send("hi"); err != nil {
					t.Fatal(err)
				}
			}
			_ = stream.CloseSend()
			for err = nil; err == nil; _, err = stream.receive() {
			}
			if got := strings.Join(told, " "); got != want {
				t.Errorf("%v: told %q, want %q", mode, got, want)
			}
		})
	}
}

// In shadow mode no message waits or is denied, and the server is told of each that
// would have been: of as many as are counted.
func TestMessagesInShadowMode(t *testing.T) {
	for mode, want := range map[Messages]int{FreeMessages: 0, DenyMessages: 3, WaitMessages: 3} {
		inBubble(t, func(w *world) {
			l := w.limiter("chat", hybrid.PerHour(1), &hybrid.LimiterOptions{Accuracy: hybrid.Strict, Shadow: true})
			told := 0
			c := w.serve(l, &ServerOptions{Messages: mode, Decided: func(_ context.Context, d Decision) {
				if !d.Result.Shadowed {
					return
				}
				if told++; d.Code != codes.OK || d.Limiter != l {
					t.Errorf("%v: told %+v", mode, d)
				}
			}})
			stream, err := c.open(ctx, chat)
			if err != nil {
				t.Fatal(err)
			}
			for range 3 {
				if err := stream.send("hi"); err != nil {
					t.Fatal(err)
				}
				if got, err := stream.receive(); err != nil || got != "hi" {
					t.Errorf("%v: %q, %v", mode, got, err)
				}
			}
			if err := stream.CloseSend(); err != nil {
				t.Fatal(err)
			}
			if _, err := stream.receive(); !errors.Is(err, io.EOF) {
				t.Error(err)
			}
			if counted := w.node.Stats().Limiters["chat"].Shadowed; told != want || counted != uint64(want) {
				t.Errorf("%v: told of %d messages, counted %d; want %d", mode, told, counted, want)
			}
		})
	}
}

// Several limits are charged for each message, or none.
func TestMessagesOfSeveralLimits(t *testing.T) {
	inBubble(t, func(w *world) {
		first, second := w.strict("first", hybrid.PerHour(100)), w.strict("second", hybrid.PerHour(3))
		c := w.serve(first, &ServerOptions{Messages: DenyMessages, More: []Check{{Limiter: second, Key: Fixed("all")}}})
		stream, err := c.open(ctx, sum)
		if err != nil {
			t.Fatal(err)
		}
		for range 3 { // with the opening four
			if err := stream.send("x"); err != nil {
				break // the server has ended it
			}
		}
		_, err = stream.receive()
		wantDenied(t, err, "second")
		if res, err := first.Peek(ctx, "203.0.113.9"); err != nil || res.Remaining != 97 {
			t.Errorf("%d left of the first limit, %v", res.Remaining, err)
		}
	})
}

// A stream whose opening is free shows what its messages were told. Its keys are found
// once, for all of its messages and for all limits that share one.
func TestKeysOfAStreamAreFoundOnce(t *testing.T) {
	inBubble(t, func(w *world) {
		asked := 0
		key := KeyFunc(func(context.Context, Call) (string, error) { asked++; return "k", nil })
		c := w.serve(w.strict("api", hybrid.PerHour(9)), &ServerOptions{
			Key: key, Cost: perByte, Messages: DenyMessages, More: []Check{{Limiter: w.strict("more", hybrid.PerHour(99))}},
		})
		stream, err := c.open(ctx, sum)
		if err != nil {
			t.Fatal(err)
		}
		for range 4 {
			if err := stream.send("x"); err != nil {
				t.Fatal(err)
			}
		}
		if err := stream.CloseSend(); err != nil {
			t.Fatal(err)
		}
		if n, err := stream.receive(); err != nil || n != "4" || asked != 1 {
			t.Errorf("%s, %v, asked %d times", n, err, asked)
		}
		wantFields(t, stream.Trailer(), "x-ratelimit-remaining", "5")
	})
}

// fakeStream is a stream on which a client has sent some messages.
type fakeStream struct {
	grpc.ServerStream
	messages, received int
}

func (f *fakeStream) Context() context.Context    { return ctx }
func (f *fakeStream) SetHeader(metadata.MD) error { return nil }
func (f *fakeStream) SetTrailer(metadata.MD)      {}
func (f *fakeStream) RecvMsg(any) error {
	if f.received == f.messages {
		return io.EOF
	}
	f.received++
	return nil
}
