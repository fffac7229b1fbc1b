package hybridrls

import (
	"strconv"

	commonv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/common/ratelimit/v3"

	"github.com/hybridlimit/hybrid"
	"github.com/hybridlimit/hybrid/exact"
)

type entries = []*commonv3.RateLimitDescriptor_Entry

// rule is a rule in force.
type rule struct {
	name     string       // as the file has it
	limit    hybrid.Limit // of overrides: none, each key has its own
	slot     *slot        // nil: unlimited
	open     []int        // the entries whose values make the key
	overdraw bool
	shadow   bool
}

// branch is where a descriptor's next entry is looked up. The tree has a branch
// for each beginning of a match.
type branch struct {
	keys  map[string]*fork
	rules []*rule // of the match that ends here
}

type fork struct {
	values map[string]*branch
	any    *branch
}

// at returns the branch of a match, and makes it.
func (b *branch) at(match []entrySpec) *branch {
	for _, e := range match {
		if b.keys == nil {
			b.keys = map[string]*fork{}
		}
		f := b.keys[e.key]
		if f == nil {
			f = &fork{values: map[string]*branch{}}
			b.keys[e.key] = f
		}
		b = f.next(e.value)
	}
	return b
}

func (f *fork) next(value string) *branch {
	if value == "" {
		if f.any == nil {
			f.any = &branch{}
		}
		return f.any
	}
	if f.values[value] == nil {
		f.values[value] = &branch{}
	}
	return f.values[value]
}

// find returns the rules of the most specific match of a descriptor; none if
// nothing matches. It goes no deeper than the longest match, and looks at each
// beginning of a match once at most.
func (b *branch) find(es entries) []*rule {
	if len(es) == 0 {
		return b.rules
	}
	f := b.keys[es[0].GetKey()]
	if f == nil {
		return nil
	}
	if named := f.values[es[0].GetValue()]; named != nil {
		if rules := named.find(es[1:]); rules != nil {
			return rules
		}
	}
	if f.any == nil {
		return nil
	}
	return f.any.find(es[1:])
}

// openEntries are the places whose values a match leaves open.
func openEntries(match []entrySpec) (open []int) {
	for i, e := range match {
		if e.value == "" {
			open = append(open, i)
		}
	}
	return open
}

// key is what a descriptor is counted under: the values that the match leaves open.
// No two lists of values give the same key: each but the last comes with its
// length. What is longer than 64 bytes is kept as its digest, so that long values
// take no more memory than short ones.
func (r *rule) key(es entries) string {
	if len(r.open) == 1 {
		return exact.CellKey(es[r.open[0]].GetValue())
	}
	var room [128]byte
	b := room[:0]
	for i, at := range r.open {
		b = appendPart(b, es[at].GetValue(), i == len(r.open)-1)
	}
	return exact.CellKey(string(b))
}

func appendPart(b []byte, part string, last bool) []byte {
	if !last {
		b = strconv.AppendInt(b, int64(len(part)), 10)
		b = append(b, ':')
	}
	return append(b, part...)
}
