package hybridrls

import (
	"slices"
	"strings"
	"testing"

	commonv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/common/ratelimit/v3"
	rlsv3 "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"
	"pgregory.net/rapid"
)

const matchRules = `
domain: edge
rules:
- {name: user, match: [{key: user}], limit: 10/h}
- {name: user-acme, match: [{key: user, value: acme}], limit: 20/h}
- {name: user-free, match: [{key: user, value: monitor}], limit: unlimited}
- {name: blocked, match: [{key: user, value: mallory}], limit: 0/s}
- {name: any-any, match: [{key: route}, {key: ip}], limit: 30/h}
- {name: login-any, match: [{key: route, value: login}, {key: ip}], limit: 40/h}
- {name: any-local, match: [{key: route}, {key: ip, value: local}], limit: 50/h}
- {name: login-a-b, match: [{key: route, value: login}, {key: ip, value: a}, {key: method, value: POST}], limit: 60/h}
---
domain: other
rules:
- {name: user, match: [{key: user}], limit: 99/h}
`

// The most specific match holds, from the first entry on; only whole descriptors
// match, and the order of the entries counts.
func TestTheMostSpecificMatchHolds(t *testing.T) {
	g := newGateway(t, matchRules, nil)
	for _, c := range []struct {
		descriptor *commonv3.RateLimitDescriptor
		rule       string // "" if none is named
	}{
		{d("user=alice"), "user"},
		{d("user=acme"), "user-acme"},
		{d("user=monitor"), ""},
		{d("route=home", "ip=b"), "any-any"},
		{d("route=login", "ip=b"), "login-any"},
		{d("route=home", "ip=local"), "any-local"},
		{d("route=login", "ip=local"), "login-any"}, // the first entry decides
		{d("route=login", "ip=a", "method=POST"), "login-a-b"},
		{d("route=login", "ip=a", "method=GET"), ""},
		{d("route=login", "ip=a"), "login-any"}, // although a longer match names a
		{d("ip=a", "route=login"), ""},
		{d("route=login"), ""},
		{d("user=alice", "ip=a"), ""},
		{d("User=alice"), ""},
		{d("user="), "user"},
		{d("nobody=knows"), ""},
		{d(), ""},
	} {
		resp := g.want(ok, 1, c.descriptor)
		if got := ruleNames(resp)[0]; got != c.rule {
			t.Errorf("%v: %q, want %q", c.descriptor, got, c.rule)
		}
	}
	g.want(overLimit, 1, d("user=mallory"))

	other := g.send(&rlsv3.RateLimitRequest{Domain: "other", Descriptors: []*commonv3.RateLimitDescriptor{d("user=alice")}})
	if got := other.GetStatuses()[0].GetCurrentLimit().GetRequestsPerUnit(); got != 99 {
		t.Errorf("the other domain's limit is %d, want its own 99", got)
	}
	if st := g.server.Stats(); st.Unmatched != 7 || st.Denied != 1 || st.Rules != 9 {
		t.Errorf("%+v: want 7 descriptors without a rule, 1 denial, 9 rules", st)
	}
}

// A value that a match leaves open has a budget of its own; one that it names
// does not tell requests apart.
func TestOpenValuesMakeTheKey(t *testing.T) {
	g := newGateway(t, `
domain: edge
rules:
- {name: pair, match: [{key: a}, {key: fixed, value: x}, {key: b}], limit: 1/h, accuracy: strict}
- {name: whole, match: [{key: all, value: "1"}], limit: 1/h, accuracy: strict}
`, nil)
	g.want(ok, 1, d("a=1", "fixed=x", "b=2"))
	g.want(overLimit, 1, d("a=1", "fixed=x", "b=2"))
	for _, other := range [][2]string{{"a=2", "b=1"}, {"a=1", "b=22"}, {"a=12", "b="}, {"a=", "b=12"}, {"a=1:1", "b=2"}, {"a=1", "b=1:2"}} {
		g.want(ok, 1, d(other[0], "fixed=x", other[1]))
		g.want(overLimit, 1, d(other[0], "fixed=x", other[1]))
	}
	g.want(ok, 1, d("all=1"))
	g.want(overLimit, 1, d("all=1"))
}

// Two lists of values never share a key, however they are chosen.
func TestKeysOfDifferentValuesDiffer(t *testing.T) {
	r := &rule{open: []int{0, 1, 2}}
	part := rapid.OneOf(rapid.StringOf(rapid.SampledFrom([]rune("1:#a"))), rapid.Just(strings.Repeat("x", 70)))
	rapid.Check(t, func(t *rapid.T) {
		draw := func(name string) entries {
			return d("a="+part.Draw(t, name), "b="+part.Draw(t, name), "c="+part.Draw(t, name)).Entries
		}
		x, y := draw("x"), draw("y")
		same := slices.EqualFunc(x, y, func(a, b *commonv3.RateLimitDescriptor_Entry) bool { return a.Value == b.Value })
		if (r.key(x) == r.key(y)) != same {
			t.Fatalf("%v and %v: keys %q and %q", x, y, r.key(x), r.key(y))
		}
		if len(r.key(x)) > 65 {
			t.Fatalf("a key of %d bytes", len(r.key(x)))
		}
	})
}

// The tree finds what a look at every rule finds.
func TestTreeAgainstEveryRule(t *testing.T) {
	word := rapid.SampledFrom([]string{"a", "b", "c"})
	entry := rapid.Custom(func(t *rapid.T) entrySpec {
		return entrySpec{word.Draw(t, "key"), rapid.SampledFrom([]string{"", "a", "b"}).Draw(t, "value")}
	})
	rapid.Check(t, func(t *rapid.T) {
		matches := rapid.SliceOfN(rapid.SliceOfN(entry, 1, 3), 1, 12).Draw(t, "matches")
		var root branch
		for _, m := range matches {
			at := root.at(m)
			at.rules = append(at.rules, &rule{name: matchText(m)})
		}
		var es entries
		for range rapid.IntRange(0, 4).Draw(t, "length") {
			es = append(es, d(word.Draw(t, "key")+"="+word.Draw(t, "value")).Entries...)
		}
		best, count := naive(matches, es)
		found := root.find(es)
		if len(found) != count || count > 0 && found[0].name != best {
			t.Fatalf("%v among %v: found %d of %v, want %d of %s", es, matches, len(found), found, count, best)
		}
	})
}

// naive is matching as the documentation says it: the best match, and how many
// rules have it.
func naive(matches [][]entrySpec, es entries) (best string, count int) {
	rank := func(m []entrySpec) string { // sorts as specific as it is
		var b strings.Builder
		for _, e := range m {
			b.WriteString(map[bool]string{true: "1", false: "0"}[e.value != ""])
		}
		return b.String()
	}
	top := ""
	for _, m := range matches {
		if !fits(m, es) {
			continue
		}
		switch text := matchText(m); {
		case count == 0 || rank(m) > top:
			best, top, count = text, rank(m), 1
		case text == best:
			count++
		}
	}
	return best, count
}

func fits(m []entrySpec, es entries) bool {
	if len(m) != len(es) {
		return false
	}
	for i, e := range m {
		if e.key != es[i].Key || e.value != "" && e.value != es[i].Value {
			return false
		}
	}
	return true
}
