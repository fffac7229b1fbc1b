package hybridrls

import (
	"errors"
	"fmt"
	"strings"
	"unicode"

	"go.yaml.in/yaml/v4"
)

// domain reads one document. lines has where the domains before it are named.
func (rd *reader) domain(n *yaml.Node, lines map[string]int) (d domainSpec) {
	useful := false
	rd.mapping(n, "", []field{
		{"domain", true, func(n *yaml.Node, path string) { d.name = rd.domainName(n, path, lines) }},
		{"rules", false, func(n *yaml.Node, path string) { useful, d.rules = true, rd.rules(n, path) }},
		{"overrides", false, func(n *yaml.Node, path string) { useful, d.overrides = true, rd.overrides(n, path) }},
	})
	if n.Kind == yaml.MappingNode && !useful { // the beginning of a file, perhaps
		rd.wrong(n, "rules", "missing")
	}
	d.overrides.settings.byKey = true
	return d
}

func (rd *reader) domainName(n *yaml.Node, path string, lines map[string]int) string {
	s, ok := rd.text(n, path, longestDomain)
	switch first, twice := lines[s]; {
	case !ok:
	case strings.ContainsFunc(s, unicode.IsControl):
		rd.wrong(n, path, "%.80q, allowed no control characters", s)
	case twice:
		rd.wrong(n, path, "%.80q is there twice, first in line %d", s, first)
	default:
		lines[s] = n.Line
	}
	return s
}

// rules reads the rules of a domain. Names must differ, for each is a limiter's.
func (rd *reader) rules(n *yaml.Node, path string) (rules []ruleSpec) {
	named, matched := map[string]int{}, map[string]int{}
	rd.list(n, path, mostRules, func(n *yaml.Node, path string) {
		r := rd.rule(n, path, named)
		match := matchText(r.match)
		if matched[match]++; match != "" && matched[match] == mostSameMatch+1 {
			rd.wrong(n, path+".match", "the same as of %d rules before, allowed %d rules of one match", mostSameMatch, mostSameMatch)
		}
		rules = append(rules, r)
	})
	return rules
}

func (rd *reader) rule(n *yaml.Node, path string, named map[string]int) (r ruleSpec) {
	rd.mapping(n, path, append([]field{
		{"name", true, func(n *yaml.Node, path string) { r.name = rd.ruleName(n, path, named) }},
		{"match", true, func(n *yaml.Node, path string) { r.match = rd.match(n, path) }},
		{"limit", true, rd.word(func(s string) (err error) { r.limit, r.unlimited, err = parseLimit(s); return err })},
		{"overdraw", false, rd.flag(&r.overdraw)},
	}, rd.settings(&r.settings)...))
	return r
}

func (rd *reader) ruleName(n *yaml.Node, path string, named map[string]int) string {
	s, ok := rd.text(n, path, longestWord)
	switch first, twice := named[s]; {
	case !ok:
	case !ruleName.MatchString(s):
		rd.wrong(n, path, "%.80q, allowed 1 to 64 letters, digits, dots, dashes and underscores, of which the first is no dot or dash", s)
	case s == overridesName:
		rd.wrong(n, path, "%q is the name of the limiter for limits that come with descriptors, allowed any other", s)
	case twice:
		rd.wrong(n, path, "%q is there twice, first in line %d", s, first)
	default:
		named[s] = n.Line
	}
	return s
}

func (rd *reader) match(n *yaml.Node, path string) (match []entrySpec) {
	rd.list(n, path, mostEntries, func(n *yaml.Node, path string) {
		var e entrySpec
		rd.mapping(n, path, []field{
			{"key", true, func(n *yaml.Node, path string) { e.key, _ = rd.text(n, path, longestWord) }},
			{"value", false, func(n *yaml.Node, path string) { e.value, _ = rd.text(n, path, longestWord) }},
		})
		match = append(match, e)
	})
	return match
}

func (rd *reader) overrides(n *yaml.Node, path string) (o overrideSpec) {
	rd.mapping(n, path, append([]field{
		{"ignore", false, rd.flag(&o.ignore)},
		{"window", false, rd.flag(&o.settings.window)},
	}, rd.settings(&o.settings)...))
	return o
}

// settings are the fields that all limiters have.
func (rd *reader) settings(to *settings) []field {
	return []field{
		{"accuracy", false, rd.word(func(s string) (err error) { to.accuracy, err = parseAccuracy(s); return err })},
		{"on_failure", false, rd.word(func(s string) (err error) { to.onFailure, err = parsePolicy(s); return err })},
		{"shadow", false, rd.flag(&to.shadow)},
	}
}

// allowed is the error of a word that is none of what it may be.
func allowed(format string, args ...any) error {
	return errors.New("allowed " + fmt.Sprintf(format, args...))
}
