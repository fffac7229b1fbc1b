package hybridrls

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/hybridlimit/hybrid"
)

// Every mistake is told with its line, its field, what is there, and what may be.
func TestBadFiles(t *testing.T) {
	const limits = `allowed COUNT/PERIOD, COUNT/PERIOD burst COUNT, COUNT/PERIOD window, or unlimited; COUNT 0 to 9007199254740992, PERIOD s, min, h, day, week or a duration from 1ms to 87600h0m0s`
	rule := func(line string) string {
		return "domain: edge\nrules:\n- name: user\n  match:\n  - key: user\n  limit: 1/s\n" + line + "\n"
	}
	for _, c := range []struct{ text, problem string }{
		{"", "line 1: domain: missing"},
		{"# nothing yet\n", "line 1: domain: missing"},
		{"---\n", "document: nothing, allowed a mapping of domain, rules, overrides"},
		{"edge", "line 1: document: a text, allowed a mapping of domain, rules, overrides"},
		{"domain: edge\n", "line 1: rules: missing"},
		{"\nrules:\n- {name: a, match: [{key: k}], limit: 1/s}\n", "line 2: domain: missing"},
		{"domain: edge\nrules: []\n", "line 2: rules: 0 items, allowed 1 to 10000"},
		{"domain: edge\nrules: {}\n", "line 2: rules: a mapping, allowed a list"},
		{"domain: edge\nrules:\n- user\n", "line 3: rules[0]: a text, allowed a mapping of name, match, limit, overdraw, accuracy, on_failure, shadow"},
		{"domain: \"\"\noverrides: {}\n", "line 1: domain: 0 bytes, allowed 1 to 128"},
		{"domain:\noverrides: {}\n", "line 1: domain: nothing, allowed a text"},
		{"domain: \"a\\tb\"\noverrides: {}\n", `line 1: domain: "a\tb", allowed no control characters`},
		{"domain: a\noverrides: {}\n---\ndomain: a\noverrides: {}\n", `line 4: domain: "a" is there twice, first in line 1`},
		{rule("  limits: 5/s"), "line 7: rules[0].limits: unknown field, allowed name, match, limit, overdraw, accuracy, on_failure, shadow"},
		{rule("  100%d: 5/s"), `line 7: rules[0]."100%d": unknown field, allowed name`},
		{rule("  limit: 5/s"), "line 7: rules[0].limit: there twice, first in line 6"},
		{rule("  accuracy: precise"), `line 7: rules[0].accuracy: "precise", allowed balanced, strict, exact, or within(over, under) with both from 0 to 1`},
		{rule("  accuracy: within(2, 0)"), `line 7: rules[0].accuracy: "within(2, 0)", allowed`},
		{rule("  on_failure: deny"), `line 7: rules[0].on_failure: "deny", allowed local, open or closed`},
		{rule("  shadow: \"true\""), `line 7: rules[0].shadow: "true", allowed true or false`},
		{rule("  overdraw: 1"), `line 7: rules[0].overdraw: "1", allowed true or false`},
		{rule("- name: user\n  match: [{key: user}]\n  limit: 1/min"), `line 7: rules[1].name: "user" is there twice, first in line 3`},
		{rule("- name: overrides\n  match: [{key: user}]\n  limit: 1/min"), `line 7: rules[1].name: "overrides" is the name of the limiter for limits that come with descriptors, allowed any other`},
		{rule("- name: a/b\n  match: [{key: user}]\n  limit: 1/min"), `line 7: rules[1].name: "a/b", allowed 1 to 64 letters, digits`},
		{rule("- name: b\n  match: [{key: user}]"), "line 7: rules[1].limit: missing"},
		{rule("- name: b\n  limit: 1/s"), "line 7: rules[1].match: missing"},
		{rule("- name: b\n  match:\n  - key: user\n  - value: x\n  limit: 1/s"), "line 10: rules[1].match[1].key: missing"},
		{rule("- name: b\n  match:\n  - key: user\n    value:\n  limit: 1/s"), "line 10: rules[1].match[0].value: nothing, allowed a text"},
		{rule("- name: b\n  match:\n  - key: user\n    value: [a, b]\n  limit: 1/s"), "line 10: rules[1].match[0].value: a list, allowed a text"},
		{rule("- name: b\n  match: &m\n  - key: user\n  limit: 1/s\n- name: c\n  match: *m\n  limit: 1/s"), "line 12: rules[2].match: an alias, allowed a list"},
		{rule("overrides: {windows: true}"), "line 7: overrides.windows: unknown field, allowed ignore, window, accuracy, on_failure, shadow"},
		{"domain: a\nrules: [\n", "line 2: not YAML: "},
		{"domain: a\nrules:\n\t- b\n", "line 3: not YAML: found character that cannot start any token"},
		{"domain: a\nrules:\n- name: x\n- *b\n", "line 4: not YAML: unknown anchor 'b' referenced"},
		{"domain: a: b\n", "line 1: not YAML: mapping values are not allowed"},
		{"domain: a\nrules:\n- name: x\n   match: y\n", "line 4: not YAML: mapping values are not allowed"},
		{"domain: a\nrules:\n- name: \"x\n  limit: 1/s\n", "line 3: not YAML: found unexpected end of stream"},
		{"domain: a\n# \xff\n", "line 2: not YAML: not UTF-8"},
		{"domain: a\nrules: \x00\n", "line 2: not YAML: a control character"},
	} {
		_, err := Parse([]byte(c.text))
		if !errors.Is(err, ErrInvalidRules) || !strings.Contains(err.Error(), c.problem) {
			t.Errorf("%q:\n got %v\nwant %s", c.text, err, c.problem)
		}
	}
	for _, bad := range []string{"5", "5/", "/s", "-5/s", "+5/s", "1e3/s", "5/fortnight", "5/0s", "5/1us", "5/-1s", "5/100000h", "5 / s", "5/s burst", "5/s burst 0", "5/s burst -1", "5/s window 3", "5/s burst 3 window", "9007199254740993/s", "99999999999999999999/s", "unlimited/s", "Unlimited", "5/1.5ns"} {
		_, err := Parse([]byte("domain: edge\nrules:\n- name: user\n  match: [{key: user}]\n  limit: " + bad + "\n"))
		if want := fmt.Sprintf("line 5: rules[0].limit: %q, %s", bad, limits); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q:\n got %v\nwant %s", bad, err, want)
		}
	}
}

// A file with many mistakes is told of the first ten.
func TestManyMistakes(t *testing.T) {
	_, err := Parse([]byte("domain: edge\nrules:\n" + strings.Repeat("- {}\n", 100)))
	if err == nil || strings.Count(err.Error(), "line ") != 10 || !strings.HasSuffix(err.Error(), "; and 290 more") {
		t.Errorf("%v: want ten mistakes and how many more", err)
	}
	same := "domain: edge\nrules:\n"
	for i := range 17 {
		same += fmt.Sprintf("- {name: r%d, match: [{key: user}], limit: 1/s}\n", i)
	}
	if _, err := Parse([]byte(same)); err == nil || !strings.Contains(err.Error(), "line 19: rules[16].match: the same as of 16 rules before") {
		t.Errorf("17 rules of one match: %v", err)
	}
	if _, err := Parse(make([]byte, mostText+1)); !errors.Is(err, ErrInvalidRules) {
		t.Errorf("a huge file: %v", err)
	}
}

// Limits, accuracies and policies are what they say.
func TestGoodRules(t *testing.T) {
	for text, want := range map[string]hybrid.Limit{
		"100/min":               hybrid.PerMinute(100),
		"0/s":                   hybrid.PerSecond(0),
		"5/second":              hybrid.PerSecond(5),
		"100/s burst 500":       hybrid.PerSecond(100).WithBurst(500),
		"10/day window":         hybrid.Window(10, 24*time.Hour),
		"7/week":                hybrid.Per(7, 7*24*time.Hour),
		"3/1m30s":               hybrid.Per(3, 90*time.Second),
		"9007199254740992/hour": hybrid.PerHour(1 << 53),
	} {
		got, unlimited, err := parseLimit(text)
		if err != nil || unlimited || got != want {
			t.Errorf("%q: %v, %v, %v; want %v", text, got, unlimited, err, want)
		}
	}
	r := mustParse(t, "domain: 7\nrules:\n- {name: a, match: [{key: 1, value: true}], limit: 5/s, accuracy: 'within(0.1, 0.2)', on_failure: closed, shadow: true, overdraw: true}\n").domains[0]
	want := ruleSpec{
		name: "a", match: []entrySpec{{"1", "true"}}, limit: hybrid.PerSecond(5), overdraw: true,
		settings: settings{accuracy: hybrid.Within(0.1, 0.2), onFailure: hybrid.FailClosed, shadow: true},
	}
	if got := fmt.Sprintf("%+v", r.rules[0]); r.name != "7" || got != fmt.Sprintf("%+v", want) {
		t.Errorf("%s of %s, want %+v", got, r.name, want)
	}
}

// The file that users begin with is right, and so is what the documentation shows.
func TestExampleFiles(t *testing.T) {
	r, err := ReadFile("example.yaml")
	if err != nil {
		t.Fatal(err)
	}
	if len(r.domains) != 2 || r.Len() < 8 {
		t.Errorf("%d domains and %d rules", len(r.domains), r.Len())
	}
	readme, err := os.ReadFile("README.md")
	if err != nil {
		t.Fatal(err)
	}
	_, block, found := strings.Cut(string(readme), "```yaml\ndomain:")
	block, _, _ = strings.Cut(block, "```")
	if _, err := Parse([]byte("domain:" + block)); !found || err != nil {
		t.Errorf("the rules in the README: %v, %v", found, err)
	}
	doc, err := os.ReadFile("doc.go")
	if err != nil {
		t.Fatal(err)
	}
	_, block, found = strings.Cut(string(doc), "//\tdomain:")
	block, _, _ = strings.Cut(block, "//\n")
	if _, err := Parse([]byte("domain:" + strings.ReplaceAll(block, "//\t", ""))); !found || err != nil {
		t.Errorf("the rules in doc.go: %v, %v", found, err)
	}
}

func TestReadFileNamesTheFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "rules.yaml")
	if _, err := ReadFile(path); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a missing file: %v", err)
	}
	write(t, path, "domain: 1\nx: 2\n")
	if _, err := ReadFile(path); !errors.Is(err, ErrInvalidRules) || !strings.HasPrefix(err.Error(), "hybridrls: invalid rules: "+path+": line 2: x: unknown field") {
		t.Errorf("%v: want the file, the line and the field", err)
	}
}

// FuzzParse reads any text: it is refused with a line that it has, or it comes out as
// rules that a server takes.
func FuzzParse(f *testing.F) {
	for _, text := range []string{
		"", "---", "domain: a", twoLimits, matchRules, oneRule("limit: 5/s burst 10"), "domain: a\noverrides: {window: true}",
		"domain: &a a\nrules: *a", "a: &x [*x]", "<<: {domain: a}", "domain: !!binary YQ==\noverrides: {}", "? {a: b}\n: c", "domain: a\nrules: [[[[[[{", "%YAML 9.9\n---\n",
		"domain: \"\\0\"", "domain: |\n  a\noverrides: {}", "\xff\xfe", "domain: a\nrules:\n- {name: a, match: [{key: k}], limit: 1/s, <<: {}}",
	} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		r, err := Parse(text)
		if err != nil {
			if !errors.Is(err, ErrInvalidRules) || len(err.Error()) > 10_000 {
				t.Fatalf("%q: %d bytes of error: %.200v", text, len(err.Error()), err)
			}
			if line, _ := lineOf(t, string(text)); line < 1 || line > lineAt(text, len(text)) {
				t.Fatalf("%q has no such line: %v", text, err)
			}
			return
		}
		c := planChange(&ruleset{}, r)
		for name, s := range c.next.slots {
			if err := s.limit.Validate(); err != nil || name == "" || len(name) > 256 {
				t.Fatalf("%q: limiter %q, %v", text, name, err)
			}
		}
		for _, dom := range r.domains {
			for _, one := range dom.rules {
				var es entries
				for _, e := range one.match {
					es = append(es, d(e.key+"="+e.value).Entries...)
				}
				if len(c.next.domains[dom.name].root.find(es)) == 0 && !strings.ContainsAny(matchText(one.match), "=") {
					t.Fatalf("%q: rule %q does not match itself", text, one.name)
				}
			}
		}
	})
}
