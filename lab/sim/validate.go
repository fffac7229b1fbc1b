package sim

import "fmt"

// Validate says which field of an experiment makes no sense.
func (e Experiment) Validate() error {
	d := e.withDefaults()
	switch {
	case d.Nodes < 1 || d.Nodes > 10_000:
		return fmt.Errorf("nodes: %d, allowed 1 to 10000", d.Nodes)
	case d.Keys < 1 || d.Keys > 100_000_000:
		return fmt.Errorf("keys: %d, allowed 1 to 100000000", d.Keys)
	case d.Sample < 0 || d.Sample > 0 && len(d.Scenes) > 0:
		return fmt.Errorf("sample: %v, allowed 0 and more, and none with scenes", d.Sample)
	case d.Cost < 1:
		return fmt.Errorf("cost: %d, allowed 1 and more", d.Cost)
	case !(d.Skew >= 0 && d.Skew <= 5):
		return fmt.Errorf("zipf: %v, allowed 0 to 5", d.Skew)
	case d.Load < 0 || d.Rate < 0 || d.Load+d.Rate == 0 && len(d.Scenes) == 0:
		return fmt.Errorf("load %v, rate %v: one of them, or scenes, must be given", d.Load, d.Rate)
	case d.Warm < 0 || d.Span <= 0:
		return fmt.Errorf("warm %v, span %v: must be positive", d.Warm, d.Span)
	case len(d.Faults) > 0 && d.Subject != nil:
		return fmt.Errorf("faults: only the library suffers them")
	}
	return d.Limit.Validate()
}
