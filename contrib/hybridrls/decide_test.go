package hybridrls

import (
	"slices"
	"testing"
	"time"

	commonv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/common/ratelimit/v3"
	rlsv3 "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"
	typev3 "github.com/envoyproxy/go-control-plane/envoy/type/v3"

	"github.com/hybridlimit/hybrid"
)

const twoLimits = `
domain: edge
rules:
- {name: user, match: [{key: user}], limit: 10/h, accuracy: exact}
- {name: route, match: [{key: route}], limit: 3/day, accuracy: exact}
`

// A status has the limit, what is left of it, and when all of it is back.
func TestStatusOfOneLimit(t *testing.T) {
	g := newGateway(t, twoLimits, nil)
	st := g.want(ok, 4, d("user=alice")).GetStatuses()[0]
	if l := st.GetCurrentLimit(); l.GetName() != "user" || l.GetRequestsPerUnit() != 10 || l.GetUnit() != rlsv3.RateLimitResponse_RateLimit_HOUR {
		t.Errorf("the limit is %v, want user, 10 an hour", l)
	}
	if st.GetLimitRemaining() != 6 {
		t.Errorf("%d remain of 10 after 4", st.GetLimitRemaining())
	}
	if reset := st.GetDurationUntilReset().AsDuration(); reset < 20*time.Minute || reset > 24*time.Minute {
		t.Errorf("all is back in %v, want some 24 minutes", reset)
	}
	g.want(ok, 6, d("user=alice"))
	denied := g.want(overLimit, 1, d("user=alice"))
	if st := denied.GetStatuses()[0]; st.GetCode() != overLimit || st.GetLimitRemaining() != 0 || st.GetDurationUntilReset().AsDuration() < 50*time.Minute {
		t.Errorf("%v: want over the limit, nothing left, an hour to go", st)
	}
	if by := denied.GetDynamicMetadata().GetFields()["limiter"].GetStringValue(); by != "edge/user" {
		t.Errorf("the metadata says %q denied, want edge/user", by)
	}
}

// Clients subtract what remains from the limit: it is never more, whatever the burst.
func TestStatusOfBursts(t *testing.T) {
	g := newGateway(t, `
domain: edge
rules:
- {name: below, match: [{key: below}], limit: 100/h burst 10, accuracy: exact}
- {name: equal, match: [{key: equal}], limit: 100/h burst 100, accuracy: exact}
- {name: above, match: [{key: above}], limit: 100/h burst 500, accuracy: exact}
- {name: window, match: [{key: window}], limit: 100/day window, accuracy: exact}
- {name: nothing, match: [{key: nothing}], limit: 0/s, accuracy: exact}
- {name: huge, match: [{key: huge}], limit: 8589934592/h burst 9007199254740992, accuracy: exact}
`, &Options{Headers: true})
	for _, c := range []struct {
		key       string
		hits      uint64
		limit     uint32
		remaining uint32
		headers   string // x-ratelimit-limit and -remaining
	}{
		{"below", 1, 100, 9, "10 9"},
		{"below", 8, 100, 1, "10 1"},
		{"below", 5, 100, 1, "10 1"}, // denied
		{"equal", 1, 100, 99, "100 99"},
		{"above", 1, 100, 100, "500 499"},
		{"above", 399, 100, 100, "500 100"},
		{"above", 1, 100, 99, "500 99"},
		{"above", 99, 100, 0, "500 0"},
		{"window", 1, 100, 99, "100 99"},
		{"nothing", 1, 0, 0, "0 0"},
		{"huge", 1, 1<<32 - 1, 1<<32 - 1, ""}, // refills while it is asked
	} {
		resp := g.ask(hits(d(c.key+"=a"), c.hits))
		st := resp.GetStatuses()[0]
		if limit, left := st.GetCurrentLimit().GetRequestsPerUnit(), st.GetLimitRemaining(); limit != c.limit || left != c.remaining {
			t.Errorf("%s after %d: %d remain of %d, want %d of %d", c.key, c.hits, left, limit, c.remaining, c.limit)
		}
		h := resp.GetResponseHeadersToAdd()
		if got := h[0].GetValue() + " " + h[1].GetValue(); c.headers != "" && got != c.headers {
			t.Errorf("%s after %d: headers of %s, want %s", c.key, c.hits, got, c.headers)
		}
	}
}

// A request that one limit denies is charged in none.
func TestSeveralDescriptorsAllOrNothing(t *testing.T) {
	g := newGateway(t, twoLimits, nil)
	admitted := g.want(ok, 3, d("user=alice"), d("unknown=x"), d("route=search"))
	if got := ruleNames(admitted); !slices.Equal(got, []string{"", "", "route"}) {
		t.Errorf("the limits shown are %q, want the tightest one alone", got)
	}
	for range 20 {
		denied := g.want(overLimit, 1, d("user=alice"), d("unknown=x"), d("route=search"))
		var codes []rlsv3.RateLimitResponse_Code
		for _, s := range denied.GetStatuses() {
			codes = append(codes, s.GetCode())
		}
		if !slices.Equal(codes, []rlsv3.RateLimitResponse_Code{ok, ok, overLimit}) {
			t.Fatalf("codes %v, want the third alone over its limit", codes)
		}
	}
	g.settle()
	if left := g.left(d("user=alice")); left != 7 {
		t.Errorf("%d left of 10: alice paid for more than the 3 requests that passed", left)
	}
}

// Rules of one match hold together.
func TestSeveralRulesOfOneMatch(t *testing.T) {
	g := newGateway(t, `
domain: edge
rules:
- {name: hourly, match: [{key: user}], limit: 2/h, accuracy: exact}
- {name: daily, match: [{key: user}], limit: 5/day window, accuracy: exact}
- {name: hourly-acme, match: [{key: user, value: acme}], limit: 4/h, accuracy: exact}
`, nil)
	g.want(ok, 2, d("user=alice"))
	if got := ruleNames(g.want(overLimit, 3, d("user=alice")))[0]; got != "hourly" {
		t.Errorf("%q denied, want hourly", got)
	}
	g.want(ok, 4, d("user=acme"))
	g.want(overLimit, 1, d("user=acme"))
	st := g.node.Stats().Limiters["edge/daily"]
	if used := st.ExactAllowed + st.SliceTokens; used < 2 {
		t.Errorf("the daily limit admitted %d, want the 2 that passed", used)
	}
}

// Two descriptors that meet one limit under one key pay twice.
func TestTheSameDescriptorTwice(t *testing.T) {
	g := newGateway(t, twoLimits, nil)
	g.want(ok, 1, d("route=a"), d("route=a"))
	g.want(overLimit, 1, d("route=a"), d("route=a"))
	g.want(ok, 1, d("route=a"))
	g.want(overLimit, 1, d("route=a"))
}

// Hits are the descriptor's, else the request's, else 1. The request's 0 is 1.
func TestHits(t *testing.T) {
	g := newGateway(t, twoLimits, nil)
	send := func(hits uint32, one *commonv3.RateLimitDescriptor) rlsv3.RateLimitResponse_Code {
		return g.send(&rlsv3.RateLimitRequest{Domain: "edge", HitsAddend: hits, Descriptors: []*commonv3.RateLimitDescriptor{one}}).GetOverallCode()
	}
	for _, step := range []struct {
		request    uint32
		descriptor *commonv3.RateLimitDescriptor
		code       rlsv3.RateLimitResponse_Code
		left       uint32
	}{
		{4, d("user=alice"), ok, 6},
		{0, d("user=alice"), ok, 5},
		{4, hits(d("user=alice"), 2), ok, 3},
		{1, hits(d("user=alice"), 4), overLimit, 3}, // a denied request costs nothing
		{4, hits(d("user=alice"), 0), ok, 3},
		{3, d("user=alice"), ok, 0},
		{1, hits(d("user=alice"), 0), overLimit, 0}, // one more would not pass
		{1, hits(d("user=bob"), 1<<63), overLimit, 10},
	} {
		if code := send(step.request, step.descriptor); code != step.code {
			t.Fatalf("%+v: %v", step, code)
		}
		if left := g.left(step.descriptor); left != step.left {
			t.Fatalf("%+v: %d left", step, left)
		}
	}
}

// What a look denies charges nobody.
func TestALookComesBeforeCharges(t *testing.T) {
	g := newGateway(t, twoLimits, nil)
	g.want(ok, 3, d("route=a"))
	denied := g.want(overLimit, 5, d("user=alice"), hits(d("route=a"), 0), hits(d("user=bob"), 0))
	if got := ruleNames(denied); !slices.Equal(got, []string{"", "route", "user"}) {
		t.Errorf("the limits shown are %q, want those that were looked at", got)
	}
	if left := g.left(d("user=alice")); left != 10 {
		t.Errorf("%d left of 10: alice paid for a request that was denied", left)
	}
}

// What is given back can be used again, and is given back whatever becomes of the
// other descriptors.
func TestRefund(t *testing.T) {
	g := newGateway(t, twoLimits, nil)
	g.want(ok, 10, d("user=alice"))
	g.want(ok, 1, refund(d("user=alice"), 4))
	g.settle()
	if left := g.left(d("user=alice")); left != 4 {
		t.Errorf("%d left after 4 were given back", left)
	}
	g.want(ok, 3, d("route=a"))
	g.want(overLimit, 1, refund(d("user=alice"), 2), d("route=a"))
	g.settle()
	if left := g.left(d("user=alice")); left != 6 {
		t.Errorf("%d left after 2 more were given back in a request that was denied", left)
	}
	g.want(ok, 1, refund(d("user=alice"), 1<<60))
	g.settle()
	if left := g.left(d("user=alice")); left != 10 {
		t.Errorf("%d left of 10 after more was given back than there was", left)
	}
}

// settle tells Redis what the node knows.
func (g *gateway) settle() {
	g.t.Helper()
	if err := g.node.Flush(g.t.Context()); err != nil {
		g.t.Fatal(err)
	}
}

// What is spent already is charged although it does not fit, up to a debt of one
// burst, and in all such limits at once.
func TestOverdraw(t *testing.T) {
	g := newGateway(t, `
domain: edge
rules:
- {name: hourly, match: [{key: team}], limit: 100/h, accuracy: exact, overdraw: true}
- {name: daily, match: [{key: team}], limit: 1000/day, accuracy: exact, overdraw: true}
- {name: user, match: [{key: user}], limit: 5/h, accuracy: exact}
`, nil)
	g.want(ok, 1, hits(d("team=a"), 0))
	g.want(ok, 1, hits(d("team=a"), 90))
	g.want(overLimit, 1, hits(d("team=a"), 60), d("user=alice"))
	g.settle()
	g.want(overLimit, 1, hits(d("team=a"), 0))
	looked := g.ask(hits(d("team=a"), 0)).GetStatuses()[0]
	if reset := looked.GetDurationUntilReset().AsDuration(); reset < 85*time.Minute {
		t.Errorf("all is back in %v, want the hour and a half that 150 of 100 an hour take", reset)
	}
	peek, err := g.limiter("edge/daily").Peek(t.Context(), "a")
	if err != nil || peek.Remaining != 850 {
		t.Errorf("%d left of the day's 1000 after 150, %v", peek.Remaining, err)
	}
	if left := g.left(d("user=alice")); left != 5 {
		t.Errorf("%d left of 5: alice paid for what was denied", left)
	}
}

// Another limit's denial means that nothing was spent, whichever is asked first and
// whether or not the node remembers that it denies.
func TestOverdrawWhereAnotherDenies(t *testing.T) {
	g := newGateway(t, `
domain: edge
rules:
- {name: hourly, match: [{key: team}], limit: 100/h, accuracy: exact, overdraw: true}
- {name: user, match: [{key: user}], limit: 5/h, accuracy: exact}
`, nil)
	g.want(ok, 5, d("user=alice"))
	g.want(ok, 3, d("user=bob"))
	g.want(overLimit, 1, hits(d("team=a"), 200), d("user=alice")) // neither is known to deny
	g.want(overLimit, 1, hits(d("team=a"), 200), hits(d("user=bob"), 3))
	g.want(overLimit, 1, hits(d("team=a"), 200), d("user=bob"), hits(d("user=bob"), 2)) // 3 in all
	g.want(overLimit, 1, d("user=alice"), hits(d("team=a"), 20))
	g.want(overLimit, 1, hits(d("team=a"), 200), d("user=alice")) // alice is remembered
	g.settle()
	if left := g.left(d("team=a")); left != 100 {
		t.Errorf("%d left of 100: a request that another limit denied was charged", left)
	}
	g.want(overLimit, 1, hits(d("team=a"), 150), hits(d("user=bob"), 2)) // all of bob's, and they suffice
	g.settle()
	if left, bob := g.left(d("team=a")), g.left(d("user=bob")); left != 0 || bob != 2 {
		t.Errorf("%d left of 100, %d of bob's 2: want the team charged alone", left, bob)
	}
}

// limiter returns a limiter of the server.
func (g *gateway) limiter(name string) *hybrid.Limiter {
	g.t.Helper()
	for _, l := range g.node.Limiters() {
		if l.Name() == name {
			return l
		}
	}
	g.t.Fatalf("there is no limiter %q", name)
	return nil
}

// A rule in shadow mode counts, and neither denies nor shows.
func TestShadow(t *testing.T) {
	g := newGateway(t, `
domain: edge
rules:
- {name: trial, match: [{key: user}], limit: 2/h, accuracy: exact, shadow: true}
- {name: route, match: [{key: route}], limit: 10/h, accuracy: exact}
`, nil)
	for range 5 {
		resp := g.want(ok, 1, d("user=alice"), d("route=a"), hits(d("user=alice"), 0))
		if got := ruleNames(resp); !slices.Equal(got, []string{"", "route", ""}) {
			t.Fatalf("the limits shown are %q, want nothing of the shadow", got)
		}
	}
	if n := g.node.Stats().Limiters["edge/trial"].Shadowed; n != 3 {
		t.Errorf("%d of 5 requests would have been denied by 2 an hour, want 3", n)
	}
	// Denied requests do not count in the shadow either.
	g.want(ok, 5, d("route=a"))
	g.want(overLimit, 4, d("user=bob"), d("route=a"))
	g.want(ok, 2, d("user=bob"))
	if n := g.node.Stats().Limiters["edge/trial"].Shadowed; n != 3 {
		t.Errorf("%d would have been denied, want still 3", n)
	}
}

// A limit that comes along takes the place of the rules; another limit is another
// budget, and so are other entries.
func TestLimitsThatComeWithDescriptors(t *testing.T) {
	g := newGateway(t, twoLimits+"overrides: {accuracy: exact}\n", nil)
	mine := limited(d("user=alice"), 2, typev3.RateLimitUnit_DAY)
	st := g.want(ok, 2, mine).GetStatuses()[0]
	if l := st.GetCurrentLimit(); l.GetName() != "overrides" || l.GetRequestsPerUnit() != 2 || l.GetUnit() != rlsv3.RateLimitResponse_RateLimit_DAY {
		t.Errorf("the limit is %v, want 2 a day", l)
	}
	g.want(overLimit, 1, mine)
	if left := g.left(d("user=alice")); left != 10 {
		t.Errorf("%d left of the rule's 10, which did not hold", left)
	}
	g.want(ok, 2, limited(d("user=bob"), 2, typev3.RateLimitUnit_DAY))
	g.want(ok, 3, limited(d("user=alice"), 3, typev3.RateLimitUnit_DAY))
	g.want(overLimit, 1, limited(d("user=alice"), 3, typev3.RateLimitUnit_DAY))
	g.want(ok, 1, limited(d("no=rule"), 1, typev3.RateLimitUnit_YEAR))
	g.want(overLimit, 1, limited(d("no=rule"), 1, typev3.RateLimitUnit_YEAR))
	g.want(overLimit, 1, limited(d("user=alice"), 0, typev3.RateLimitUnit_SECOND))
	if got := ruleNames(g.want(ok, 1, limited(d("user=alice"), 1, typev3.RateLimitUnit_UNKNOWN)))[0]; got != "user" {
		t.Errorf("a limit of no known unit is %q's, want the rule's", got)
	}

	g.setRules(twoLimits + "overrides: {ignore: true}\n")
	if got := ruleNames(g.want(ok, 1, mine))[0]; got != "user" {
		t.Errorf("an ignored limit is %q's, want the rule's", got)
	}
}

// Headers are of the limit that denied, or of the tightest one.
func TestHeaders(t *testing.T) {
	g := newGateway(t, twoLimits, &Options{Headers: true})
	get := func(resp *rlsv3.RateLimitResponse) map[string]string {
		all := map[string]string{}
		for _, h := range resp.GetResponseHeadersToAdd() {
			all[h.GetKey()] = h.GetValue()
		}
		return all
	}
	h := get(g.want(ok, 1, d("user=alice"), d("route=a")))
	if h["x-ratelimit-limit"] != "3" || h["x-ratelimit-remaining"] != "2" || h["retry-after"] != "" {
		t.Errorf("%v: want 3, 2 left, and no time to retry", h)
	}
	g.want(ok, 2, d("route=a"))
	h = get(g.want(overLimit, 1, d("user=alice"), d("route=a")))
	retry, err := time.ParseDuration(h["retry-after"] + "s")
	if h["x-ratelimit-remaining"] != "0" || err != nil || retry < time.Minute || retry > 8*time.Hour {
		t.Errorf("%v, %v: want nothing left, and a third of a day at most to wait", h, err)
	}
	if h := get(g.want(ok, 1, d("nobody=knows"))); len(h) != 0 {
		t.Errorf("headers %v without a limit", h)
	}
}

// A domain without rules is OK, and counted.
func TestUnknownDomain(t *testing.T) {
	g := newGateway(t, twoLimits, nil)
	resp := g.send(&rlsv3.RateLimitRequest{Domain: "nowhere", Descriptors: []*commonv3.RateLimitDescriptor{d("user=alice")}})
	if resp.GetOverallCode() != ok || resp.GetStatuses()[0].GetCode() != ok {
		t.Errorf("%v, want OK", resp)
	}
	if st := g.server.Stats(); st.UnknownDomains != 1 || st.Requests != 1 || st.Allowed != 1 {
		t.Errorf("%+v: want 1 unknown domain", st)
	}
}
