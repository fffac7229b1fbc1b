package flame

import (
	"bytes"
	"fmt"
	"slices"

	"github.com/google/pprof/profile"
)

// Profile is a profile of one kind of value.
type Profile struct {
	samples []sample
	total   int64
	unit    string
}

// sample is a stack and what was spent in it.
type sample struct {
	stack []string // full names of functions, the outermost first
	value int64
}

// Read reads a profile as package pprof writes it, and of its values those of a type,
// such as "cpu" or "delay".
func Read(data []byte, value string) (*Profile, error) {
	raw, err := profile.Parse(bytes.NewReader(data))
	if err != nil {
		return nil, fmt.Errorf("flame: %w", err)
	}
	i := slices.IndexFunc(raw.SampleType, func(t *profile.ValueType) bool { return t.Type == value })
	if i < 0 {
		return nil, fmt.Errorf("flame: the profile has no values of type %q", value)
	}
	p := &Profile{unit: raw.SampleType[i].Unit}
	for _, s := range raw.Sample {
		p.samples = append(p.samples, sample{stackOf(s), s.Value[i]})
		p.total += s.Value[i]
	}
	return p, nil
}

// Total is the sum of all values, in Unit.
func (p *Profile) Total() int64 { return p.total }

// Unit is what the values are measured in.
func (p *Profile) Unit() string { return p.unit }

// stackOf turns a stack round. Where functions were inlined, one location is several of
// them, the innermost first like the locations.
func stackOf(s *profile.Sample) (stack []string) {
	for _, l := range slices.Backward(s.Location) {
		for _, line := range slices.Backward(l.Line) {
			if line.Function != nil {
				stack = append(stack, line.Function.Name)
			}
		}
		if len(l.Line) == 0 {
			stack = append(stack, fmt.Sprintf("%#x", l.Address))
		}
	}
	return stack
}
