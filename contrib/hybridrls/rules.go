package hybridrls

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"os"
	"regexp"
	"strings"

	"github.com/hybridlimit/hybrid"
)

// ErrInvalidRules is wrapped by the errors of Parse and ReadFile, with the line, the
// field, the value and what is allowed, of the first ten problems. ReadFile's name
// the file too.
var ErrInvalidRules = errors.New("hybridrls: invalid rules")

// Rules are the contents of a rules file. They do not change.
type Rules struct {
	domains []domainSpec
	sum     [sha256.Size]byte // of the text
}

type domainSpec struct {
	name      string
	rules     []ruleSpec
	overrides overrideSpec
}

type ruleSpec struct {
	name      string
	match     []entrySpec
	limit     hybrid.Limit
	unlimited bool
	overdraw  bool
	settings  settings
}

// entrySpec is an entry of a match. An empty value means any.
type entrySpec struct{ key, value string }

type overrideSpec struct {
	ignore   bool
	settings settings
}

// settings are what a limiter is made with and has until it is closed.
type settings struct {
	accuracy  hybrid.Accuracy
	onFailure hybrid.FailurePolicy
	shadow    bool

	byKey  bool // each key says its own limit: overrides
	window bool // of overrides: fixed windows
}

// Bounds of a rules file and its parts. Of text, since the parser takes up to 600 bytes
// of memory for each byte of what is no rules file, such as a list of commas.
const (
	mostText      = 2 << 20
	mostDomains   = 1000
	mostRules     = 10_000 // of a domain
	mostEntries   = 32     // of a match
	mostSameMatch = 16     // rules that hold together
	longestDomain = 128
	longestWord   = 1024 // of a key or a value of a match
)

// overridesName is the name of the limiter for limits that come with descriptors.
const overridesName = "overrides"

var ruleName = regexp.MustCompile(`^[A-Za-z0-9_][A-Za-z0-9._-]{0,63}$`)

// Parse reads the text of a rules file. See the package's documentation for the
// format. It fails with ErrInvalidRules.
func Parse(text []byte) (*Rules, error) {
	r, wrong := parse(text)
	if wrong != "" {
		return nil, fmt.Errorf("%w: %s", ErrInvalidRules, wrong)
	}
	return r, nil
}

// parse returns the rules of a text, or what is wrong with it.
func parse(text []byte) (r *Rules, wrong string) {
	rd := &reader{}
	domains := rd.documents(text)
	if len(rd.problems) > 0 {
		return nil, rd.summary()
	}
	return &Rules{domains: domains, sum: sha256.Sum256(text)}, ""
}

// ReadFile is Parse of a file. It fails with ErrInvalidRules, or if the file cannot
// be read.
func ReadFile(path string) (*Rules, error) {
	text, err := readText(path)
	if err != nil {
		return nil, err
	}
	r, wrong := parse(text)
	if wrong != "" {
		return nil, fmt.Errorf("%w: %s: %s", ErrInvalidRules, path, wrong)
	}
	return r, nil
}

// readText reads a file, but no more of it than Parse takes.
func readText(path string) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return io.ReadAll(io.LimitReader(f, mostText+1))
}

// Len returns the number of rules, of all domains.
func (r *Rules) Len() int {
	n := 0
	for i := range r.domains {
		n += len(r.domains[i].rules)
	}
	return n
}

// matchText is a match as an index: equal for equal matches, and for no others.
func matchText(match []entrySpec) string {
	var b strings.Builder
	for _, e := range match {
		fmt.Fprintf(&b, "%d:%s%d:%s", len(e.key), e.key, len(e.value), e.value)
	}
	return b.String()
}
