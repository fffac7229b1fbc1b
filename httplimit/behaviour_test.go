package httplimit

import (
	"context"
	"fmt"
	"net/http"
	"strconv"
	"testing"
	"time"

	"github.com/hybridlimit/hybrid"
)

// The cases are what went wrong in other limiters, each reduced to its smallest
// input. The number in a test's name is the case's; see docs/accuracy.md.

var ctx = context.Background()

var accuracies = []hybrid.Accuracy{hybrid.Balanced, hybrid.Strict, hybrid.Exact}

// Late in a window the next one is near, whatever the window's length is.
func TestRetryAfterLateInAWindow(t *testing.T) {
	for _, acc := range accuracies[1:] { // without a floor, exactly 5 pass
		inBubble(t, func(w *world) {
			api := w.limiter("api", hybrid.Window(5, time.Minute), &hybrid.LimiterOptions{Accuracy: acc})
			h := w.serve(api, nil)
			time.Sleep(59 * time.Second)
			for range 5 {
				wantStatus(t, call(h), http.StatusOK, "Retry-After", "")
			}
			wantStatus(t, call(h), http.StatusTooManyRequests, "Retry-After", "1", "X-RateLimit-Reset", "1")
			time.Sleep(time.Second)
			wantStatus(t, call(h), http.StatusOK, "Retry-After", "")
		})
	}
}

// Retry-After is never 0, and after as many whole seconds the same request
// passes: of limits that refill within a millisecond, and of costs that take many
// refills.
func TestRetryAfterIsKept(t *testing.T) {
	limits := []hybrid.Limit{hybrid.PerSecond(1), hybrid.PerSecond(7), hybrid.PerSecond(1000), hybrid.PerMinute(5),
		hybrid.Per(3, 10*time.Minute), hybrid.Per(3, 7*time.Millisecond), hybrid.PerSecond(100).WithBurst(10),
		hybrid.Window(100, time.Second), hybrid.Window(20, time.Minute)}
	for _, acc := range accuracies {
		for _, limit := range limits {
			inBubble(t, func(w *world) {
				api := w.limiter("api", limit, &hybrid.LimiterOptions{Accuracy: acc})
				cost := limit.Burst()
				h := w.serve(api, &Options{Cost: func(*http.Request) int64 { return cost }})
				wantStatus(t, call(h), http.StatusOK)
				cost = limit.Burst()/2 + 1
				denied := call(h)
				seconds, err := strconv.Atoi(denied.Header.Get("Retry-After"))
				if denied.StatusCode != http.StatusTooManyRequests || err != nil || seconds < 1 {
					t.Errorf("%v %v, cost %d: %d with %v", acc, limit, cost, denied.StatusCode, denied.Header)
				}
				time.Sleep(time.Duration(seconds) * time.Second)
				if again := call(h); again.StatusCode != http.StatusOK {
					t.Errorf("%v %v, cost %d: %d after %d s: %v", acc, limit, cost, again.StatusCode, seconds, again.Header)
				}
			})
		}
	}
}

// What no wait helps has no Retry-After.
func TestNothingToWaitFor(t *testing.T) {
	inBubble(t, func(w *world) {
		none := w.serve(w.strict("none", hybrid.PerSecond(0)), nil)
		wantStatus(t, call(none), http.StatusTooManyRequests, "Retry-After", "", "X-RateLimit-Limit", "0", "X-RateLimit-Remaining", "0")
		dear := w.serve(w.strict("dear", hybrid.PerSecond(10)), &Options{
			Headers: IETF,
			Cost:    func(*http.Request) int64 { return 11 },
		})
		wantStatus(t, call(dear), http.StatusTooManyRequests, "Retry-After", "", "RateLimit", `"dear";r=10`)
	})
}

// Of two limits on a route the one that denies describes the response, and the
// other one is not charged.
func TestHeadersOfTheLimitThatDenied(t *testing.T) {
	inBubble(t, func(w *world) {
		user := w.strict("user", hybrid.PerHour(100))
		tenant := w.strict("tenant", hybrid.PerDay(3))
		opts := &Options{
			Key:  Header("X-User"),
			More: []Check{{Limiter: tenant, Key: Header("X-Tenant")}},
		}
		parts := w.serve(user, opts)
		opts.Headers = IETF
		fields := w.serve(user, opts)
		ann := []func(*http.Request){with("X-User", "ann"), with("X-Tenant", "acme")}

		for left := 2; left >= 0; left-- { // the tenant's is the tighter one
			wantStatus(t, call(parts, ann...), http.StatusOK,
				"X-RateLimit-Limit", "3", "X-RateLimit-Remaining", strconv.Itoa(left), "Retry-After", "")
		}
		retry := strconv.Itoa(8 * 60 * 60) // a third of a day
		wantStatus(t, call(parts, ann...), http.StatusTooManyRequests,
			"X-RateLimit-Limit", "3", "X-RateLimit-Remaining", "0", "Retry-After", retry)
		wantStatus(t, call(fields, ann...), http.StatusTooManyRequests,
			"RateLimit", `"tenant";r=0;t=`+retry, "RateLimit-Policy", `"tenant";q=3;w=86400`, "Retry-After", retry)

		if err := w.node.Flush(ctx); err != nil { // what was put back
			t.Error(err)
		}
		if r, err := user.Peek(ctx, "ann"); err != nil || r.Remaining != 97 {
			t.Errorf("the limit that did not deny: %+v, %v; want 97 of 100 left", r, err)
		}
		other := []func(*http.Request){with("X-User", "bob"), with("X-Tenant", "other")}
		wantStatus(t, call(fields, other...), http.StatusOK, "RateLimit", `"tenant";r=2;t=57600`)
	})
}

// Limits of one size are told apart: the one that denies is named, whichever it is.
func TestLimitsOfOneSize(t *testing.T) {
	inBubble(t, func(w *world) {
		var told Decision
		user, route, tenant := w.strict("user", hybrid.PerHour(2)), w.strict("route", hybrid.PerHour(2)), w.strict("tenant", hybrid.PerHour(2))
		opts := &Options{
			Key:     Header("X-User"),
			Headers: IETF,
			More:    []Check{{Limiter: route, Key: Header("X-Route")}, {Limiter: tenant, Key: Header("X-Tenant")}},
			Deny:    func(w http.ResponseWriter, _ *http.Request, d Decision) { told = d; w.WriteHeader(d.Status) },
		}
		h := w.serve(user, opts)
		send := func(user, route, tenant string) *http.Response {
			return call(h, with("X-User", user), with("X-Route", route), with("X-Tenant", tenant))
		}
		for range 2 {
			wantStatus(t, send("ann", "items", "acme"), http.StatusOK)
		}
		for _, c := range []struct {
			user, route, tenant string
			limiter             *hybrid.Limiter
			key                 string
		}{
			{"ann", "users", "other", user, "ann"},
			{"bob", "items", "other", route, "items"},
			{"bob", "users", "acme", tenant, "acme"},
		} {
			resp := send(c.user, c.route, c.tenant)
			name := c.limiter.Name()
			wantStatus(t, resp, http.StatusTooManyRequests, "RateLimit", fmt.Sprintf(`%q;r=0;t=1800`, name), "RateLimit-Policy", fmt.Sprintf(`%q;q=2;w=3600`, name))
			if told.Limiter != c.limiter || told.Name != name || told.Key != c.key {
				t.Errorf("told that %q denied %q, want %q of %q", told.Name, told.Key, name, c.key)
			}
		}
	})
}

// A client must not choose its bucket. Each row is a request, and the key that
// it is counted under.
func TestClientIP(t *testing.T) {
	trusted := []string{"10.0.0.0/8", "192.168.1.7", "fd00::/8", "::ffff:172.16.0.0/108"}
	for _, c := range []struct {
		why       string
		trusted   []string
		remote    string
		forwarded []string // header lines
		want      string
	}{
		{"nothing is trusted by default", nil, "203.0.113.9:1234", []string{"1.1.1.1"}, "203.0.113.9"},
		{"nor is loopback", nil, "127.0.0.1:1234", []string{"1.1.1.1"}, "127.0.0.1"},
		{"a peer that is not trusted is the client", trusted, "203.0.113.9:1234", []string{"1.1.1.1, 10.0.0.2"}, "203.0.113.9"},
		{"what the trusted proxy appended", trusted, "10.0.0.1:80", []string{"203.0.113.9"}, "203.0.113.9"},
		{"the client forged an entry before it", trusted, "10.0.0.1:80", []string{"1.1.1.1, 203.0.113.9"}, "203.0.113.9"},
		{"or one that is trusted", trusted, "10.0.0.1:80", []string{"10.9.9.9, 203.0.113.9"}, "203.0.113.9"},
		{"or a line of its own", trusted, "10.0.0.1:80", []string{"1.1.1.1", "203.0.113.9"}, "203.0.113.9"},
		{"a chain of trusted proxies", trusted, "10.0.0.1:80", []string{"1.1.1.1, 203.0.113.9, 192.168.1.7,10.0.0.2"}, "203.0.113.9"},
		{"over several lines", trusted, "10.0.0.1:80", []string{"203.0.113.9, 10.0.0.3", "10.0.0.2"}, "203.0.113.9"},
		{"a neighbour of a single trusted address", trusted, "192.168.1.8:80", []string{"1.1.1.1"}, "192.168.1.8"},
		{"no header: the proxy itself", trusted, "10.0.0.1:80", nil, "10.0.0.1"},
		{"all are trusted: the one that is furthest", trusted, "10.0.0.1:80", []string{"10.0.0.3, 10.0.0.2"}, "10.0.0.3"},
		{"an entry that is no address stops the walk", trusted, "10.0.0.1:80", []string{"203.0.113.9, unknown, 10.0.0.2"}, "10.0.0.2"},
		{"at once", trusted, "10.0.0.1:80", []string{"203.0.113.9, unknown"}, "10.0.0.1"},
		{"an empty one too", trusted, "10.0.0.1:80", []string{"203.0.113.9, "}, "10.0.0.1"},
		{"an empty line too", trusted, "10.0.0.1:80", []string{"203.0.113.9", ""}, "10.0.0.1"},
		{"octal is no address", trusted, "10.0.0.1:80", []string{"203.0.113.9, 010.0.0.2"}, "10.0.0.1"},
		{"IPv6 counts by /64", trusted, "[2001:db8:1:2:3:4:5:6]:443", nil, "2001:db8:1:2::/64"},
		{"also behind proxies", trusted, "[fd00::1]:443", []string{"2001:db8:1:2:ffff::1"}, "2001:db8:1:2::/64"},
		{"IPv4 in IPv6 is IPv4", trusted, "[::ffff:203.0.113.9]:443", nil, "203.0.113.9"},
		{"in any spelling", trusted, "10.0.0.1:80", []string{"::FFFF:cb00:7109"}, "203.0.113.9"},
		{"and is trusted as such", trusted, "[::ffff:10.0.0.1]:443", []string{"203.0.113.9"}, "203.0.113.9"},
		{"a network that is given so is IPv4 too", trusted, "172.16.5.5:443", []string{"203.0.113.9"}, "203.0.113.9"},
		{"and has its size", trusted, "172.32.0.1:443", []string{"203.0.113.9"}, "172.32.0.1"},
		{"ports do not count", trusted, "10.0.0.1:80", []string{"203.0.113.9:5555"}, "203.0.113.9"},
		{"with brackets neither", trusted, "10.0.0.1:80", []string{"[2001:db8::1]:5555"}, "2001:db8::/64"},
		{"brackets alone", trusted, "10.0.0.1:80", []string{"[2001:db8::1]"}, "2001:db8::/64"},
		{"a zone does not count", trusted, "[2001:db8::1%eth0]:443", nil, "2001:db8::/64"},
		{"link-local addresses count in full", trusted, "[fe80::1%eth0]:443", nil, "fe80::1"},
		{"a server without ports", trusted, "203.0.113.9", nil, "203.0.113.9"},
		{"a socket that is not trusted", trusted, "@", []string{"203.0.113.9"}, ""},
		{"a socket that is", []string{"unix"}, "@", []string{"1.1.1.1, 203.0.113.9"}, "203.0.113.9"},
		{"a socket whose proxy says nothing", []string{"unix"}, "@", nil, ""},
		{"no address at all", trusted, "localhost:80", []string{"203.0.113.9"}, ""},
	} {
		key := ClientIP(c.trusted, nil)
		r := &http.Request{RemoteAddr: c.remote, Header: http.Header{"X-Forwarded-For": c.forwarded}}
		if got, err := keyBy(key.find, native{r}); got != c.want || (err != nil) != (c.want == "") {
			t.Errorf("%s: %q behind %q: key %q, %v; want %q", c.why, c.forwarded, c.remote, got, err, c.want)
		}
	}
}

// The same through a middleware: a client that writes another X-Forwarded-For
// each time has one budget.
func TestForgedHeadersShareOneBudget(t *testing.T) {
	inBubble(t, func(w *world) {
		for name, key := range map[string]Key{"default": {}, "behind a proxy": ClientIP([]string{"10.0.0.0/8"}, nil)} {
			h := w.serve(w.strict(name, hybrid.PerHour(3)), &Options{Key: key})
			passed := 0
			for i := range 20 {
				forged := with("X-Forwarded-For", fmt.Sprintf("1.1.1.%d, 203.0.113.9", i))
				if resp := call(h, from("10.0.0.1:1234"), forged); resp.StatusCode == http.StatusOK {
					passed++
				}
			}
			if passed != 3 {
				t.Errorf("%s: %d passed of a limit of 3", name, passed)
			}
		}
	})
}
