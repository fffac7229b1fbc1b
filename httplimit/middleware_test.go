package httplimit

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"reflect"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/hybridlimit/hybrid"
	"github.com/hybridlimit/hybrid/internal/redistest"
)

func TestDefaults(t *testing.T) {
	inBubble(t, func(w *world) {
		h := w.serve(w.strict("api", hybrid.PerMinute(2)), nil)
		resp := call(h)
		wantStatus(t, resp, http.StatusOK, "X-RateLimit-Limit", "2", "X-RateLimit-Remaining", "1", "X-RateLimit-Reset", "30", "Retry-After", "")
		if body := bodyOf(t, resp); body != "served" {
			t.Errorf("body %q", body)
		}
		wantStatus(t, call(h), http.StatusOK, "X-RateLimit-Remaining", "0")
		resp = call(h)
		wantStatus(t, resp, http.StatusTooManyRequests, "X-RateLimit-Limit", "2", "X-RateLimit-Remaining", "0", "X-RateLimit-Reset", "60",
			"Retry-After", "30", "Content-Type", "text/plain; charset=utf-8", "Cache-Control", "no-store")
		if body := bodyOf(t, resp); body != "Too Many Requests\n" {
			t.Errorf("body %q", body)
		}
		wantStatus(t, call(h, from("203.0.113.9:1")), http.StatusOK) // another address
	})
}

// A request without a key is refused, is not counted, and says why only to the
// server.
func TestNoKeyIsNoSharedBucket(t *testing.T) {
	secret := errors.New("user 42 has no session")
	keys := map[string]Key{
		"missing": Header("X-API-Key"),
		"empty":   KeyFunc(func(*http.Request) (string, error) { return "", nil }),
		"failing": KeyFunc(func(*http.Request) (string, error) { return "k", secret }),
		"no IP": KeyFunc(func(*http.Request) (string, error) {
			return keyBy(RemoteIP(nil).find, native{&http.Request{RemoteAddr: "pipe"}})
		}),
		"too long": KeyFunc(func(*http.Request) (string, error) {
			return strings.Repeat("k", longestKey+1), nil
		}),
	}
	inBubble(t, func(w *world) {
		api := w.strict("api", hybrid.PerHour(1))
		for name, key := range keys {
			for range 3 {
				resp := call(w.serve(api, &Options{Key: key}))
				wantStatus(t, resp, http.StatusBadRequest, "Retry-After", "", "X-RateLimit-Limit", "", "Cache-Control", "no-store")
				if body := bodyOf(t, resp); body != "Bad Request\n" {
					t.Errorf("%s: body %q", name, body)
				}
			}
			wantStatus(t, call(w.serve(api, &Options{Key: key, NoKey: http.StatusUnauthorized})), http.StatusUnauthorized)
			var told error
			own := &Options{Key: key, Failure: func(w http.ResponseWriter, _ *http.Request, err error) {
				told = err
				w.WriteHeader(http.StatusTeapot)
			}}
			wantStatus(t, call(w.serve(api, own)), http.StatusTeapot)
			if !errors.Is(told, ErrNoKey) || errors.Is(told, secret) != (name == "failing") {
				t.Errorf("%s: Failure was told %v", name, told)
			}
		}
		if n := w.node.Stats().Total.Keys; n != 0 {
			t.Errorf("%d keys are remembered of requests that had none", n)
		}
	})
}

func TestSkippedAndFreeRequestsAreNotAsked(t *testing.T) {
	inBubble(t, func(w *world) {
		one := w.strict("one", hybrid.PerHour(1))
		skipping := w.serve(one, &Options{Skip: func(r *http.Request) bool { return r.URL.Path == "/items/1" }})
		free := w.serve(one, &Options{Cost: func(*http.Request) int64 { return 0 }})
		both := w.serve(one, &Options{Cost: func(*http.Request) int64 { return 0 }, More: []Check{{Limiter: w.strict("two", hybrid.PerHour(1))}}})
		for range 5 {
			for _, h := range []http.Handler{skipping, free, both} {
				wantStatus(t, call(h), http.StatusOK, "X-RateLimit-Limit", "", "Retry-After", "")
			}
		}
		if n := w.node.Stats().Total.Keys; n != 0 {
			t.Errorf("%d keys were asked for", n)
		}
		wantStatus(t, call(skipping, func(r *http.Request) { r.URL.Path = "/" }), http.StatusOK, "X-RateLimit-Limit", "1")
	})
}

func TestCosts(t *testing.T) {
	inBubble(t, func(w *world) {
		cost := int64(6)
		h := w.serve(w.strict("rows", hybrid.PerHour(10)), &Options{Cost: func(*http.Request) int64 { return cost }})
		wantStatus(t, call(h), http.StatusOK, "X-RateLimit-Remaining", "4")
		wantStatus(t, call(h), http.StatusTooManyRequests, "Retry-After", "720") // two more refill in 12 minutes
		cost = 4
		wantStatus(t, call(h), http.StatusOK, "X-RateLimit-Remaining", "0")
		cost = -1
		wantStatus(t, call(h), http.StatusInternalServerError, "Retry-After", "")
	})
}

// A limit that is FailClosed turns requests away while Redis does not answer, and
// says that it is not their fault. The other policies do what they say.
func TestRedisIsDown(t *testing.T) {
	inBubble(t, func(w *world) {
		with := func(name string, p hybrid.FailurePolicy) http.Handler {
			l := w.limiter(name, hybrid.PerMinute(3), &hybrid.LimiterOptions{Accuracy: hybrid.Strict, OnFailure: p})
			return w.serve(l, &Options{Headers: IETF, Problem: true})
		}
		closed, open, local := with("closed", hybrid.FailClosed), with("open", hybrid.FailOpen), with("local", hybrid.FailLocal)
		w.breakRedis()
		for i := range 10 {
			resp := call(closed)
			wantStatus(t, resp, http.StatusServiceUnavailable, "Retry-After", "1", "RateLimit", `"closed";r=0;t=1`)
			if i == 0 {
				wantProblem(t, resp, problem{Type: reducedCapacity, Status: 503, Detail: "Retry after 1 s.",
					Title: "Request cannot be satisfied due to temporary server capacity constraints"})
			}
			wantStatus(t, call(open), http.StatusOK, "Retry-After", "")
			if i < 3 {
				wantStatus(t, call(local), http.StatusOK)
				continue
			}
			resp = call(local) // its share is used up: that is its client's doing
			wantStatus(t, resp, http.StatusTooManyRequests)
			if resp.Header.Get("Retry-After") == "" {
				t.Error("a denial by FailLocal without Retry-After")
			}
		}
		w.mini.SetError("")
		time.Sleep(3 * time.Second)
		wantStatus(t, call(closed), http.StatusOK, "Retry-After", "")
	})
}

// A denial by FailLocal is for what its client has used, also where the next token
// comes when Redis is asked again.
func TestFailLocalIsNotUnavailable(t *testing.T) {
	inBubble(t, func(w *world) {
		var told Decision
		opts := &Options{Key: Header("X-Key"), Deny: func(w http.ResponseWriter, _ *http.Request, d Decision) { told = d; w.WriteHeader(d.Status) }}
		h := w.serve(w.strict("local", hybrid.PerSecond(1)), opts)
		w.breakRedis()
		for _, key := range []string{"a", "b", "c", "d", "e"} { // until nobody waits for Redis
			wantStatus(t, call(h, with("X-Key", key)), http.StatusOK)
		}
		time.Sleep(time.Nanosecond) // waits are rounded up by one
		wantStatus(t, call(h, with("X-Key", "e")), http.StatusTooManyRequests, "Retry-After", "1")
		if r := told.Result; r.Path != hybrid.PathFallback || r.RetryAfter != time.Second {
			t.Errorf("%+v, want a denial by the failure policy for exactly a second", r)
		}
	})
}

func TestClientsThatDoNotWait(t *testing.T) {
	inBubble(t, func(w *world) {
		api := w.limiter("api", hybrid.PerHour(100), &hybrid.LimiterOptions{Accuracy: hybrid.Exact})
		h := w.serve(api, nil)
		wantStatus(t, call(h), http.StatusOK) // connections are made
		w.link.RTT(func() time.Duration { return 10 * time.Millisecond })
		left, leave := context.WithCancel(ctx)
		time.AfterFunc(time.Millisecond, leave)
		resp := call(h, func(r *http.Request) { *r = *r.WithContext(left) })
		wantStatus(t, resp, statusClientLeft, "Retry-After", "", "Content-Type", "")
		late, cancel := context.WithTimeout(ctx, time.Millisecond)
		defer cancel()
		resp = call(h, func(r *http.Request) { *r = *r.WithContext(late) })
		wantStatus(t, resp, http.StatusServiceUnavailable, "Retry-After", "1", "X-RateLimit-Limit", "")
		time.Sleep(time.Second)
	})
}

func TestClosedLimiter(t *testing.T) {
	inBubble(t, func(w *world) {
		api := w.strict("api", hybrid.PerHour(100))
		h := w.serve(api, &Options{Names: Names{RetryAfter: "X-Retry"}})
		if err := api.Close(); err != nil {
			t.Fatal(err)
		}
		wantStatus(t, call(h), http.StatusServiceUnavailable, "X-Retry", "1", "Retry-After", "")
	})
}

// What is watched in shadow mode passes; the server is told, the client is not.
func TestShadow(t *testing.T) {
	inBubble(t, func(w *world) {
		var told []Decision
		opts := &Options{Key: Fixed("k"), Decided: func(_ *http.Request, d Decision) {
			if d.Result.Shadowed {
				told = append(told, d)
			}
		}}
		shadow := w.limiter("api", hybrid.PerHour(2), &hybrid.LimiterOptions{Accuracy: hybrid.Strict, Shadow: true})
		h := w.serve(shadow, opts)
		for i := range 5 {
			wantStatus(t, call(h), http.StatusOK, "X-RateLimit-Remaining", fmt.Sprint(max(0, 1-i)), "Retry-After", "")
		}
		if len(told) != 3 {
			t.Fatalf("told of %d requests, want 3", len(told))
		}
		d := told[0]
		if !d.Result.Shadowed || d.Limiter != shadow || d.Name != "api" || d.Key != "k" || d.Status != http.StatusOK {
			t.Errorf("told %+v", d)
		}
		never := w.limiter("never", hybrid.PerHour(0), &hybrid.LimiterOptions{Shadow: true})
		wantStatus(t, call(w.serve(never, &Options{Headers: IETF})), http.StatusOK, "RateLimit", `"never";r=0`)
	})
}

// Nor does another limit hide what a trial would have denied. The headers are those of
// the limit that the server is told of.
func TestShadowBesideLimitsThatAreEnforced(t *testing.T) {
	inBubble(t, func(w *world) {
		for i, c := range []struct {
			limit hybrid.Limit
			cost  int64
			told  int // of 8
			last  string
		}{
			{hybrid.PerHour(0), 1, 8, `"trial";r=0`},
			{hybrid.PerHour(100), 60, 7, `"trial";r=40;t=1440`},
		} {
			enforced := w.strict(fmt.Sprint("enforced ", i), hybrid.PerHour(8))
			trial := w.limiter(fmt.Sprint("trial ", i), c.limit, &hybrid.LimiterOptions{Accuracy: hybrid.Strict, Shadow: true})
			told := 0
			h := w.serve(enforced, &Options{Key: Fixed("k"), Headers: IETF,
				Decided: func(_ *http.Request, d Decision) {
					if !d.Result.Shadowed {
						return
					}
					if told++; d.Limiter != trial || d.Status != http.StatusOK {
						t.Errorf("told %+v", d)
					}
				},
				More: []Check{{Limiter: trial, Name: "trial", Cost: func(*http.Request) int64 { return c.cost }}},
			})
			for range 7 {
				wantStatus(t, call(h), http.StatusOK)
			}
			wantStatus(t, call(h), http.StatusOK, "RateLimit", c.last, "Retry-After", "")
			wantStatus(t, call(h), http.StatusTooManyRequests, "RateLimit", fmt.Sprintf(`"enforced %d";r=0;t=450`, i), "Retry-After", "450")
			if counted := w.node.Stats().Limiters[trial.Name()].Shadowed; told != c.told || counted != uint64(told) {
				t.Errorf("%v: told of %d requests, counted %d; want %d", c.limit, told, counted, c.told)
			}
		}
	})
}

// Each decision is told once, before the handler runs or the request is refused:
// whoever made it, and however it turned out. What was not decided is not told.
func TestDecided(t *testing.T) {
	inBubble(t, func(w *world) {
		var log []string
		cost := int64(1)
		serve := func(name string, opts hybrid.LimiterOptions, more ...Check) func(path string, change ...func(*http.Request)) {
			opts.Accuracy = hybrid.Exact
			mw, err := New(w.limiter(name, hybrid.PerHour(1), &opts), &Options{
				Key:     Header("X-Key"),
				Cost:    func(*http.Request) int64 { return cost },
				Skip:    func(r *http.Request) bool { return r.URL.Path == "/skip" },
				Deny:    func(http.ResponseWriter, *http.Request, Decision) { log = append(log, "denied") },
				Failure: func(http.ResponseWriter, *http.Request, error) { log = append(log, "failed") },
				Decided: func(r *http.Request, d Decision) {
					log = append(log, fmt.Sprint("decided ", r.URL.Path, " ", d.Name, " ", d.Key, " ", d.Status, " ", d.Result.Path, " ", d.Result.Shadowed))
				},
				More: more,
			})
			if err != nil {
				t.Fatal(err)
			}
			h := mw(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { log = append(log, "handled "+r.URL.Path) }))
			return func(path string, change ...func(*http.Request)) {
				call(h, append(change, func(r *http.Request) { r.URL.Path = path })...)
			}
		}
		ann, bob := with("X-Key", "ann"), with("X-Key", "bob")
		open := serve("open", hybrid.LimiterOptions{OnFailure: hybrid.FailOpen})
		closed := serve("closed", hybrid.LimiterOptions{OnFailure: hybrid.FailClosed})
		shadow := serve("shadow", hybrid.LimiterOptions{Shadow: true})
		both := serve("first", hybrid.LimiterOptions{}, Check{Limiter: w.strict("second", hybrid.PerHour(5))})
		open("/1", ann)
		open("/2", ann)
		open("/no-key")
		open("/skip", ann)
		cost = 0
		open("/free", ann)
		both("/free", ann)
		cost = -1
		open("/negative", ann)
		cost = 1
		shadow("/3", ann)
		shadow("/4", ann)
		both("/5", ann)
		both("/6", ann)
		w.breakRedis()
		open("/7", bob)
		closed("/8", bob)
		want := []string{
			"decided /1 open ann 200 exact false", "handled /1",
			"decided /2 open ann 429 exact false", "denied",
			"failed",
			"handled /skip",
			"handled /free",
			"handled /free",
			"failed",
			"decided /3 shadow ann 200 exact false", "handled /3",
			"decided /4 shadow ann 200 exact true", "handled /4",
			"decided /5 first ann 200 exact false", "handled /5",
			"decided /6 first ann 429 exact false", "denied",
			"decided /7 open bob 200 fallback false", "handled /7",
			"decided /8 closed bob 503 fallback false", "denied",
		}
		if got := strings.Join(log, "\n"); got != strings.Join(want, "\n") {
			t.Errorf("got\n%s\nwant\n%s", got, strings.Join(want, "\n"))
		}
	})
}

func TestDenyHandler(t *testing.T) {
	inBubble(t, func(w *world) {
		opts := &Options{Name: "public name", Key: Fixed("k"), Deny: func(w http.ResponseWriter, _ *http.Request, d Decision) {
			seconds, ok := d.RetryAfter()
			w.WriteHeader(d.Status)
			fmt.Fprint(w, d.Name, " ", d.Key, " ", d.Limiter.Name(), " ", seconds, " ", ok)
		}}
		h := w.serve(w.strict("api", hybrid.PerMinute(1)), opts)
		wantStatus(t, call(h), http.StatusOK)
		resp := call(h)
		wantStatus(t, resp, http.StatusTooManyRequests, "Retry-After", "60", "X-RateLimit-Limit", "1")
		if body := bodyOf(t, resp); body != "public name k api 60 true" {
			t.Errorf("body %q", body)
		}
	})
}

// wantProblem fails the test unless a body is a problem document.
func wantProblem(t *testing.T, resp *http.Response, want problem) {
	t.Helper()
	if ct := resp.Header.Get("Content-Type"); ct != "application/problem+json" {
		t.Errorf("Content-Type %q", ct)
	}
	var got problem
	if err := json.Unmarshal([]byte(bodyOf(t, resp)), &got); err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("got %+v, %v; want %+v", got, err, want)
	}
}

func TestProblemDocuments(t *testing.T) {
	inBubble(t, func(w *world) {
		cost := int64(1)
		opts := &Options{Key: Header("X-Key"), Name: `a "name"`, Problem: true, NoKey: http.StatusForbidden,
			Cost: func(*http.Request) int64 { return cost }}
		h := w.serve(w.strict("api", hybrid.PerMinute(1)), opts)
		me := with("X-Key", "me")
		wantStatus(t, call(h, me), http.StatusOK)
		exceeded := problem{Type: quotaExceeded, Title: "Request cannot be satisfied as assigned quota has been exceeded",
			Status: 429, Detail: "Retry after 60 s.", Violated: []string{`a "name"`}}
		wantProblem(t, call(h, me), exceeded)
		cost, exceeded.Detail = 2, "The request can never pass: it costs more than the limit."
		wantProblem(t, call(h, me), exceeded)
		cost = -1
		wantProblem(t, call(h, me), problem{Type: "about:blank", Title: "Internal Server Error", Status: 500})
		cost = 1
		wantProblem(t, call(h), problem{Type: "about:blank", Title: "Forbidden", Status: 403,
			Detail: "The request does not say clearly who it comes from."})
	})
}

// Per second and per day by one key, and per tenant by another: all are charged
// or none.
func TestSeveralLimits(t *testing.T) {
	inBubble(t, func(w *world) {
		second, day, tenant := w.strict("second", hybrid.PerSecond(2)), w.strict("day", hybrid.PerDay(5)), w.strict("tenant", hybrid.PerHour(100))
		h := w.serve(second, &Options{Key: Header("X-User"), More: []Check{
			{Limiter: day},
			{Limiter: tenant, Key: Fixed("acme"), Cost: func(*http.Request) int64 { return 10 }},
		}})
		ann := with("X-User", "ann")
		wantStatus(t, call(h), http.StatusBadRequest)
		wantStatus(t, call(h, ann), http.StatusOK, "X-RateLimit-Limit", "2", "X-RateLimit-Remaining", "1")
		wantStatus(t, call(h, ann), http.StatusOK, "X-RateLimit-Limit", "2", "X-RateLimit-Remaining", "0")
		wantStatus(t, call(h, ann), http.StatusTooManyRequests, "X-RateLimit-Limit", "2", "Retry-After", "1")
		for range 3 {
			time.Sleep(time.Second)
			wantStatus(t, call(h, ann), http.StatusOK)
		}
		time.Sleep(time.Second)
		wantStatus(t, call(h, ann), http.StatusTooManyRequests, "X-RateLimit-Limit", "5")
		wantStatus(t, call(h, with("X-User", "bob")), http.StatusOK)
		_ = w.node.Flush(ctx)
		for _, c := range []struct {
			l    *hybrid.Limiter
			key  string
			left int64
		}{{day, "ann", 0}, {day, "bob", 4}, {tenant, "acme", 40}} {
			if r, err := c.l.Peek(ctx, c.key); err != nil || r.Remaining != c.left {
				t.Errorf("%s of %s: %+v, %v; want %d left", c.l.Name(), c.key, r, err, c.left)
			}
		}
	})
}

// A key function of one limit that fails refuses the request, whatever the
// others say, and charges none of them.
func TestSeveralLimitsAndOneKeyMissing(t *testing.T) {
	inBubble(t, func(w *world) {
		user, tenant := w.strict("user", hybrid.PerHour(5)), w.strict("tenant", hybrid.PerHour(5))
		h := w.serve(user, &Options{More: []Check{{Limiter: tenant, Key: Header("X-Tenant")}}})
		wantStatus(t, call(h), http.StatusBadRequest)
		if n := w.node.Stats().Total.Keys; n != 0 {
			t.Errorf("%d keys were asked for", n)
		}
		wantStatus(t, call(h, with("X-Tenant", "acme")), http.StatusOK)
	})
}

// Coarse at the edge, precise in the handler: the inner limit is shown, and a
// request that the outer one denies does not reach it.
func TestNestedLimits(t *testing.T) {
	inBubble(t, func(w *world) {
		edge, err := New(w.strict("edge", hybrid.PerHour(3)), nil)
		if err != nil {
			t.Fatal(err)
		}
		h := edge(w.serve(w.strict("route", hybrid.PerHour(2)), nil))
		wantStatus(t, call(h), http.StatusOK, "X-RateLimit-Limit", "2")
		wantStatus(t, call(h), http.StatusOK, "X-RateLimit-Limit", "2")
		wantStatus(t, call(h), http.StatusTooManyRequests, "X-RateLimit-Limit", "2")
		wantStatus(t, call(h), http.StatusTooManyRequests, "X-RateLimit-Limit", "3")
	})
}

// Many requests of many tiers at once, for the race detector; each sees its own
// policy.
func TestAtOnce(t *testing.T) {
	node, err := hybrid.New(redistest.MiniClient(t), &hybrid.Options{Logger: silent, StoreTimeout: time.Second})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = node.Close() })
	api, err := node.Limiter("api", hybrid.PerHour(1), &hybrid.LimiterOptions{LimitFor: func(key string) (hybrid.Limit, bool) {
		return hybrid.PerHour(1000 + int64(len(key))), true
	}})
	if err != nil {
		t.Fatal(err)
	}
	h := serve(t, api, &Options{Headers: IETF, Key: Header("X-Key")})
	var all sync.WaitGroup
	for i := range 8 {
		all.Go(func() {
			for j := range 400 {
				n := 1 + (i*97+j)%300
				resp := call(h, with("X-Key", strings.Repeat("k", n)))
				wantStatus(t, resp, http.StatusOK, "RateLimit-Policy", fmt.Sprintf(`"api";q=%d;w=3600`, 1000+n))
			}
		})
	}
	all.Wait()
}
