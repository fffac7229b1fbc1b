package hybridrls

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strings"

	"go.yaml.in/yaml/v4"
)

// reader turns a tree of YAML into rules. It takes the tree and not a struct's
// fields, because every complaint needs its line, and because a tree expands no
// aliases.
type reader struct {
	last     int // line of the text that is not blank
	problems []string
	more     int // problems that are not listed
}

const mostProblems = 10

// wrong notes a problem with the line that it is in.
func (rd *reader) wrong(n *yaml.Node, field, format string, args ...any) {
	rd.note(n.Line, "%s: %s", field, fmt.Sprintf(format, args...)) // a field's name may hold a %
}

func (rd *reader) note(line int, format string, args ...any) {
	if len(rd.problems) == mostProblems {
		rd.more++
		return
	}
	rd.problems = append(rd.problems, fmt.Sprintf("line %d: %s", min(line, rd.last), fmt.Sprintf(format, args...)))
}

func (rd *reader) summary() string {
	s := strings.Join(rd.problems, "; ")
	if rd.more > 0 {
		s += fmt.Sprintf("; and %d more", rd.more)
	}
	return s
}

// documents reads all documents of a text, one per domain.
func (rd *reader) documents(text []byte) (domains []domainSpec) {
	rd.last = lastLine(text)
	if !rd.legible(text) {
		return nil
	}
	loader, err := yaml.NewLoader(bytes.NewReader(text))
	lines := map[string]int{} // where each domain is named
	for err == nil {
		var doc yaml.Node
		if err = loader.Load(&doc); err != nil || len(doc.Content) == 0 {
			continue
		}
		n := doc.Content[0]
		if len(domains) == mostDomains {
			rd.note(n.Line, "domain: more than %d, allowed 1 to %d", mostDomains, mostDomains)
			return nil
		}
		domains = append(domains, rd.domain(n, lines))
	}
	switch {
	case !errors.Is(err, io.EOF):
		rd.notYAML(err)
	case len(domains) == 0:
		rd.note(1, "domain: missing, allowed one document per domain")
	}
	return domains
}

// field is one field of a mapping.
type field struct {
	name     string
	required bool
	read     func(n *yaml.Node, path string)
}

// mapping hands each field of a mapping to its reader. It complains of what is no
// mapping, and of fields that are unknown, missing, or there twice.
func (rd *reader) mapping(n *yaml.Node, path string, fields []field) {
	if n.Kind != yaml.MappingNode {
		rd.wrong(n, orRoot(path), "%s, allowed a mapping of %s", kindOf(n), names(fields))
		return
	}
	seen := map[string]int{}
	for i := 0; i+1 < len(n.Content); i += 2 {
		key, value := n.Content[i], n.Content[i+1]
		if first, twice := seen[key.Value]; twice {
			rd.wrong(key, below(path, key.Value), "there twice, first in line %d", first)
			continue
		}
		seen[key.Value] = key.Line
		if f := find(fields, key); f != nil {
			f.read(value, below(path, f.name))
		} else {
			rd.wrong(key, below(path, key.Value), "unknown field, allowed %s", names(fields))
		}
	}
	for _, f := range fields {
		if _, there := seen[f.name]; f.required && !there {
			rd.wrong(n, below(path, f.name), "missing")
		}
	}
}

func find(fields []field, key *yaml.Node) *field {
	for i := range fields {
		if key.Kind == yaml.ScalarNode && fields[i].name == key.Value {
			return &fields[i]
		}
	}
	return nil
}

// list hands each item of a list to a reader, if there are at least one and not too
// many.
func (rd *reader) list(n *yaml.Node, path string, most int, read func(n *yaml.Node, path string)) {
	switch {
	case n.Kind != yaml.SequenceNode:
		rd.wrong(n, path, "%s, allowed a list", kindOf(n))
	case len(n.Content) == 0 || len(n.Content) > most:
		rd.wrong(n, path, "%d items, allowed 1 to %d", len(n.Content), most)
	default:
		for i, item := range n.Content {
			read(item, fmt.Sprintf("%s[%d]", path, i))
		}
	}
}

// text returns a scalar as it is written. ok is false if there is none, which has
// been complained of.
func (rd *reader) text(n *yaml.Node, path string, most int) (s string, ok bool) {
	switch {
	case n.Kind != yaml.ScalarNode || n.Tag == "!!null":
		rd.wrong(n, path, "%s, allowed a text", kindOf(n))
	case n.Value == "" || len(n.Value) > most:
		rd.wrong(n, path, "%d bytes, allowed 1 to %d", len(n.Value), most)
	default:
		return n.Value, true
	}
	return "", false
}

// flag reads true or false.
func (rd *reader) flag(to *bool) func(n *yaml.Node, path string) {
	return func(n *yaml.Node, path string) {
		var v bool
		if n.Kind != yaml.ScalarNode || n.Tag != "!!bool" || n.Decode(&v) != nil {
			rd.wrong(n, path, "%s, allowed true or false", shown(n))
			return
		}
		*to = v
	}
}

// word reads a text and hands it to a parser, whose error says what is allowed.
func (rd *reader) word(parse func(string) error) func(n *yaml.Node, path string) {
	return func(n *yaml.Node, path string) {
		if s, ok := rd.text(n, path, longestWord); ok {
			if err := parse(s); err != nil {
				rd.wrong(n, path, "%.80q, %v", s, err)
			}
		}
	}
}

func kindOf(n *yaml.Node) string {
	switch n.Kind {
	case yaml.MappingNode:
		return "a mapping"
	case yaml.SequenceNode:
		return "a list"
	case yaml.AliasNode:
		return "an alias"
	case yaml.ScalarNode:
		if n.Tag == "!!null" {
			return "nothing"
		}
		return "a text"
	default:
		return "something else"
	}
}

func shown(n *yaml.Node) string {
	if n.Kind == yaml.ScalarNode && n.Tag != "!!null" {
		return fmt.Sprintf("%.80q", n.Value)
	}
	return kindOf(n)
}

func names(fields []field) string {
	var all []string
	for _, f := range fields {
		all = append(all, f.name)
	}
	return strings.Join(all, ", ")
}

// below is the path of a field. A name that may hold anything is quoted.
func below(path, name string) string {
	if !ruleName.MatchString(name) {
		name = fmt.Sprintf("%.80q", name)
	}
	if path == "" {
		return name
	}
	return path + "." + name
}

func orRoot(path string) string {
	if path == "" {
		return "document"
	}
	return path
}
