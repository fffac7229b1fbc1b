package hybridrls

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	commonv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/common/ratelimit/v3"
	rlsv3 "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/hybridlimit/hybrid"
)

func oneRule(fields string) string {
	return "domain: edge\nrules:\n- {name: user, match: [{key: user}], " + fields + "}\n"
}

// What was used counts on, whatever of a rule changes.
func TestWhatWasUsedCountsOn(t *testing.T) {
	g := newGateway(t, oneRule("limit: 10/h, accuracy: exact"), nil)
	g.want(ok, 4, d("user=alice"))
	for _, step := range []struct {
		rule string
		left uint32
	}{
		{"limit: 20/h, accuracy: exact", 16},                      // in place
		{"limit: 20/h, accuracy: strict", 16},                     // made again
		{"limit: 6/h, accuracy: exact, on_failure: closed", 2},    // both
		{"limit: 10/h, accuracy: exact, on_failure: closed", 6},   // back
		{"limit: 10/h, accuracy: balanced, on_failure: local", 6}, // and again
	} {
		g.setRules(oneRule(step.rule))
		if left := g.left(d("user=alice")); left != step.left {
			t.Errorf("%s: %d left after 4, want %d", step.rule, left, step.left)
		}
	}
	g.setRules(oneRule("limit: 4/h, accuracy: exact"))
	g.want(overLimit, 1, d("user=alice"))
	g.setRules(oneRule("limit: 4/h, accuracy: exact, shadow: true"))
	g.want(ok, 3, d("user=alice"))
	g.setRules(oneRule("limit: 4/h, accuracy: exact"))
	g.want(overLimit, 1, d("user=alice"))
	g.setRules(oneRule("limit: unlimited"))
	g.want(ok, 3, d("user=alice"))
	g.setRules(oneRule("limit: 5/h, accuracy: exact"))
	g.want(ok, 1, d("user=alice"))
	g.want(overLimit, 1, d("user=alice"))
}

// While a limiter is made again, its requests wait for it, as long as their time
// allows, and those of other rules do not.
func TestRequestsWaitForALimiterThatIsMadeAgain(t *testing.T) {
	g := newGateway(t, twoLimits, nil)
	g.want(ok, 9, d("user=alice"))
	rules := mustParse(t, strings.Replace(twoLimits, "accuracy: exact", "accuracy: strict", 1)) // of user alone
	c := planChange(g.server.rules, rules)
	if len(c.again) != 1 || c.again[0].new.name != "edge/user" || len(c.fresh)+len(c.limits)+len(c.gone) != 0 {
		t.Fatalf("%+v: want edge/user to be made again, and nothing else", c)
	}
	if err := g.server.publish(c, rules); err != nil {
		t.Fatal(err)
	}
	g.want(ok, 1, d("route=a"))
	g.want(ok, 1, d("nobody=knows"))
	short, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	req := &rlsv3.RateLimitRequest{Domain: "edge", Descriptors: []*commonv3.RateLimitDescriptor{d("user=alice")}}
	if _, err := g.server.ShouldRateLimit(short, req); status.Code(err) != codes.DeadlineExceeded {
		t.Fatalf("a call without time to wait: %v", err)
	}
	var waiting sync.WaitGroup
	var admitted atomic.Int64
	for range 5 {
		waiting.Go(func() {
			if resp, err := g.server.ShouldRateLimit(context.Background(), req); err == nil && resp.GetOverallCode() == ok {
				admitted.Add(1)
			}
		})
	}
	time.Sleep(20 * time.Millisecond)
	if admitted.Load() != 0 {
		t.Error("a request passed a limiter that was not there")
	}
	if err := c.finish(g.node); err != nil {
		t.Fatal(err)
	}
	waiting.Wait()
	if admitted.Load() != 1 {
		t.Errorf("%d of the requests that waited passed, want the one that was left of 10", admitted.Load())
	}
}

// Limiters come and go with their rules.
func TestLimitersComeAndGoWithRules(t *testing.T) {
	g := newGateway(t, twoLimits, nil)
	names := func() string {
		s := ""
		for _, l := range g.node.Limiters() {
			s += l.Name() + " "
		}
		return s
	}
	if got := names(); got != "edge/overrides edge/route edge/user " {
		t.Errorf("limiters %q", got)
	}
	g.setRules("domain: other\noverrides: {ignore: true}\nrules:\n- {name: user, match: [{key: user}], limit: 1/h}\n")
	if got := names(); got != "other/user " {
		t.Errorf("limiters %q after the domain has gone", got)
	}
	g.want(ok, 20, d("user=alice")) // unknown now
	g.server.Close()
	if got := names(); got != "" {
		t.Errorf("limiters %q after the server was closed", got)
	}
	if err := g.server.SetRules(mustParse(t, twoLimits)); !errors.Is(err, hybrid.ErrClosed) {
		t.Errorf("new rules for a closed server: %v", err)
	}
}

// A limiter that cannot be made leaves everything as it was.
func TestRulesThatCannotBeMade(t *testing.T) {
	g := newGateway(t, oneRule("limit: 10/h, accuracy: exact"), nil)
	if _, err := g.node.Limiter("edge/mine", hybrid.PerHour(1), nil); err != nil {
		t.Fatal(err)
	}
	before := len(g.node.Limiters())
	err := g.server.SetRules(mustParse(t, `
domain: edge
rules:
- {name: user, match: [{key: user}], limit: 1/h, accuracy: exact}
- {name: fresh, match: [{key: a}], limit: 1/h}
- {name: mine, match: [{key: b}], limit: 1/h}
`))
	if !errors.Is(err, hybrid.ErrDuplicateLimiter) {
		t.Fatalf("%v, want a limiter of that name", err)
	}
	if got := len(g.node.Limiters()); got != before {
		t.Errorf("%d limiters, %d before: one was left behind", got, before)
	}
	g.want(ok, 10, d("user=alice"))
	g.want(overLimit, 1, d("user=alice"))
}

// While rules change all the time, in all ways, requests are answered without an
// error, and each by the rules of one moment: both rules of a moment have the same
// limit, and no other moment has it.
func TestReloadUnderLoad(t *testing.T) {
	versions := []string{
		"- {name: one, match: [{key: user}], limit: 1000000/h}\n- {name: two, match: [{key: route}], limit: 1000000/h}\n",
		"- {name: one-b, match: [{key: user}], limit: 1000001/h}\n- {name: two-b, match: [{key: route}], limit: 1000001/h}\n",
		"- {name: one, match: [{key: user}], limit: 1000002/h, accuracy: strict}\n- {name: two, match: [{key: route}], limit: 1000002/h, on_failure: open}\n",
		"- {name: one, match: [{key: user}], limit: 1000003/h, accuracy: strict}\n- {name: two, match: [{key: route}], limit: 1000003/h, on_failure: open}\n",
	}
	text := func(i int) string { return "domain: edge\nrules:\n" + versions[i%len(versions)] }
	g := newGateway(t, text(0), nil)

	ctx, stop := context.WithCancel(t.Context())
	var calls, mixed atomic.Int64
	var failed atomic.Pointer[error]
	var load sync.WaitGroup
	for worker := range 8 {
		load.Go(func() {
			for i := 0; ctx.Err() == nil; i++ {
				user, route := fmt.Sprintf("user=%d", worker), fmt.Sprintf("route=%d", i%10)
				// To look shows both limits, to charge the tightest one.
				ds := []*commonv3.RateLimitDescriptor{d(user), d(route)}
				if i%2 == 0 {
					ds = []*commonv3.RateLimitDescriptor{hits(d(user), 0), hits(d(route), 0)}
				}
				resp, err := g.client.ShouldRateLimit(context.Background(), &rlsv3.RateLimitRequest{Domain: "edge", Descriptors: ds})
				if err != nil || resp.GetOverallCode() != ok {
					err = fmt.Errorf("%v, %w", resp.GetOverallCode(), err)
					failed.CompareAndSwap(nil, &err)
					return
				}
				calls.Add(1)
				one, two := resp.GetStatuses()[0].GetCurrentLimit(), resp.GetStatuses()[1].GetCurrentLimit()
				if i%2 == 0 && one.GetRequestsPerUnit() != two.GetRequestsPerUnit() {
					mixed.Add(1)
				}
			}
		})
	}
	reloads := 0
	for end := time.Now().Add(time.Second); time.Now().Before(end) || reloads < 8; reloads++ {
		g.setRules(text(reloads + 1))
		time.Sleep(time.Millisecond)
	}
	stop()
	load.Wait()
	if err := failed.Load(); err != nil {
		t.Errorf("a request failed: %v", *err)
	}
	if mixed.Load() > 0 || calls.Load() < int64(reloads) {
		t.Errorf("%d of %d requests met rules of two moments, in %d reloads", mixed.Load(), calls.Load(), reloads)
	}
	if st := g.server.Stats(); st.Errors != 0 || st.Unmatched != 0 {
		t.Errorf("%+v: want no error, and every descriptor matched", st)
	}
	t.Logf("%d requests, %d reloads", calls.Load(), reloads)
}
