package hybridrls

import (
	"errors"
	"fmt"
	"os"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

func readExample(t testing.TB) string {
	t.Helper()
	text, err := os.ReadFile("example.yaml")
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// goodRules has five lines a rule, after two.
func goodRules(n int) string {
	var b strings.Builder
	b.WriteString("domain: edge\nrules:\n")
	for i := range n {
		fmt.Fprintf(&b, "- name: r%d\n  match:\n  - key: user\n    value: v%d\n  limit: 1/s\n", i, i)
	}
	return b.String()
}

var inLine = regexp.MustCompile(`^hybridrls: invalid rules: line (\d+): `)

// lineOf is the line that the first problem of a text is said to be in.
func lineOf(t testing.TB, text string) (int, error) {
	t.Helper()
	_, err := Parse([]byte(text))
	if !errors.Is(err, ErrInvalidRules) {
		t.Fatalf("%.300q: %v", text, err)
	}
	m := inLine.FindStringSubmatch(err.Error())
	if m == nil {
		t.Fatalf("%.300q: no line: %v", text, err)
	}
	line, _ := strconv.Atoi(m[1])
	return line, err
}

// What is no YAML is told with the line that a person would mend, however long the
// text before and after it is. The second line that some tell is where the broken
// part began.
func TestLineOfWhatIsNotYAML(t *testing.T) {
	example := readExample(t)
	first, second, _ := strings.Cut(example, "\n---\n")
	end := strings.Count(first, "\n") + 2 // of the three dashes
	long := "domain: a\nrules:\n- name: x\n  match: [\n" + strings.Repeat("    {key: k},\n", 30)
	for _, c := range []struct {
		text string
		line int
		says string
	}{
		// Indentation.
		{first + "\n ---\n" + second, end, "did not find expected key, while parsing a block mapping from line 5"},
		{first + "\n - name: x\n   match: [{key: k}]\n   limit: 1/s\n", end, "did not find expected key"},
		{first + "\n- name: x\n  match:\n  - key: k\n limit: 1/s\n", end, "did not find expected key"},
		{goodRules(8) + "- name: bad\n  match: [{key: k}]\n limit: 1/s\n", 45, "did not find expected key"},
		{goodRules(8) + "- name: bad\n  match: [{key: k}]\n limit: 1/s\n" + goodRules(8), 45, "did not find expected key"},
		{goodRules(8) + "- name: bad\n   limit: 1/s\n", 44, "mapping values are not allowed"},
		{goodRules(8) + "- name: bad\n\tlimit: 1/s\n", 44, "found a tab character"},
		{goodRules(1) + "overrides:\n  shadow: true\n ignore: true\n", 10, "did not find expected key"},

		// Brackets and quotes.
		{goodRules(8) + "- name: bad\n  match: [{key: a} {key: b}]\n  limit: 1/s\n", 44, "did not find expected ',' or ']'"},
		{goodRules(8) + "- name: bad\n  limit: \"1/s\" window\n", 44, "did not find expected key"},
		{long + "    {key: k}\n    {key: k}\n  ]\n  limit: 1/s\n", 36, "did not find expected ',' or ']', while parsing a flow sequence from line 4"},
		{long + "    {key: k}\n", 4, "did not find expected ',' or ']'"},
		{long + "\n\n", 34, "did not find expected node content"},
		{goodRules(1) + "- {name: a,\n  match: [{key: k}],\n  limit: 1/s\n\n\n", 8, "did not find expected ',' or '}'"},
		{goodRules(1) + "- name: \"x\n  limit: 1/s\n" + strings.Repeat("\n", 9), 8, "found unexpected end of stream"},
		{goodRules(1) + "- name: 'x\n  limit: 1/s\n---\n" + goodRules(1), 8, "found unexpected document indicator"},
		{"\"domain: a\nrules: b\n\n", 1, "found unexpected end of stream"},
		{goodRules(1) + "- name: \"x\n  limit: 1/s\n  \\q\"\n", 10, "found unknown escape character, while scanning a quoted scalar from line 8"},

		// Keys and colons.
		{goodRules(1) + "- name: x\n  limit 1/s\n  match: [{key: k}]\n", 9, "could not find expected ':'"},
		{goodRules(1) + "overrides\n", 8, "could not find expected ':'"},
		{"domain: a: b\n", 1, "mapping values are not allowed"},

		// Names that stand for other things.
		{"domain: a # *b *bc\nrules:\n- name: *bc\n  limit: *b\n", 3, "unknown anchor 'bc' referenced"},
		{goodRules(1) + "- name: !x!y z\n", 8, "found undefined tag handle"},
		{goodRules(1) + "- name: &\n", 8, "did not find expected"},
		{goodRules(1) + "- name: @x\n", 8, "found character that cannot start any token"},
		{"# a\n# b\n%YAML 9.9\n---\n" + goodRules(1), 3, "found incompatible YAML document"},
		{goodRules(1) + "- name: *" + strings.Repeat("x", 1<<20), 8, "unknown anchor 'xx"},

		// What ends a line.
		{strings.ReplaceAll(goodRules(8)+"]\n", "\n", "\r\n"), 43, "did not find expected"},
		{strings.ReplaceAll(goodRules(8)+"]\n", "\n", "\r"), 43, "did not find expected"},
		{strings.ReplaceAll(goodRules(8)+"\xff\n", "\n", "\r"), 43, "not UTF-8"},
		{goodRules(8) + "# a\u2028b\n]\n", 43, "a line end that is neither LF nor CR"},
		{goodRules(8) + "# a\u2029b\n", 43, "a line end that is neither LF nor CR"},
		{goodRules(8) + "# a\u0085b\n", 43, "a line end that is neither LF nor CR"},
		{goodRules(8) + "# \uffff\n", 43, "a control character"},
		{goodRules(8) + "# \ufffd \U0010ffff \n]\n", 44, "did not find expected"},
		{"\ufeff" + goodRules(8) + "]\n", 43, "did not find expected"},
	} {
		line, err := lineOf(t, c.text)
		if line != c.line || !strings.Contains(err.Error(), ": not YAML: "+c.says) || len(err.Error()) > 1000 {
			t.Errorf("%.400q:\n got %.400v\nwant line %d: not YAML: %s", c.text, err, c.line, c.says)
		}
	}
}

// The line is right wherever the text is broken.
func TestBrokenAtEveryLine(t *testing.T) {
	lines := strings.SplitAfter(readExample(t), "\n")
	for at := range lines {
		before, after := strings.Join(lines[:at], ""), strings.Join(lines[at:], "")
		for _, wrong := range []string{"}\n", "]: x\n", "@\n", "*nobody\n", "- }\n", "\x01\n"} {
			if line, err := lineOf(t, before+wrong+after); line != at+1 {
				t.Errorf("%q before line %d: %v", wrong, at+1, err)
			}
		}
	}
}

// A document that is not there is missed in its last line, not below it.
func TestLineOfNothing(t *testing.T) {
	for text, want := range map[string]int{
		"": 1, "\n\n\n": 1, "# nothing yet\n\n": 1, "---": 1, "---\n\n\n": 1,
		goodRules(1) + "---\n":         8,
		goodRules(1) + "---\n\n\n\n":   8,
		goodRules(1) + "- name:\n\n\n": 8,
		goodRules(1) + "overrides:\n":  8,
	} {
		if line, err := lineOf(t, text); line != want {
			t.Errorf("%q: %v, want line %d", text, err, want)
		}
	}
}

// Texts with too much of something are told of the line from which on it is too much.
func TestLineOfTooMuch(t *testing.T) {
	domains := func(n int) string {
		var b strings.Builder
		for i := range n {
			fmt.Fprintf(&b, "---\ndomain: d%d\noverrides: {}\n", i)
		}
		return b.String()
	}
	mustParse(t, domains(mostDomains))
	comment := strings.Repeat("x", 1022)
	for _, c := range []struct {
		text string
		line int
		says string
	}{
		{domains(mostDomains + 1), 3*mostDomains + 2, "domain: more than 1000, allowed 1 to 1000"},
		{domains(mostDomains+1) + "---\n]", 3*mostDomains + 2, "domain: more than 1000, allowed 1 to 1000"},
		{strings.Repeat("#"+comment+"\n", mostText/1024) + "domain: a\n", mostText/1024 + 1, "the text is longer than 2097152 bytes"},
		{strings.Repeat("#", mostText+1), 1, "the text is longer than 2097152 bytes"},
	} {
		line, err := lineOf(t, c.text)
		if line != c.line || !strings.Contains(err.Error(), c.says) {
			t.Errorf("got %.200v, want line %d: %s", err, c.line, c.says)
		}
	}
}
