package sim

import (
	"strings"
	"testing"
	"time"

	"github.com/hybridlimit/hybrid"
)

// short is a row at reduced length. Above the limit it begins when a full bucket
// has been used up, and what follows is like the long run.
func (r Row) short() Experiment {
	e := r.Experiment
	e.Seed = 1
	switch {
	case e.Span > 0:
	case e.Rate > 0: // some hundred thousand requests are enough
		e.Warm, e.Fills = findEachOther+e.Fill(), 1
	case e.Scenes != nil:
		e.Fills = 6 // each scene twice
	case !r.denies():
		e.Fills = 2
	default:
		used := 1 + 1/(e.Load-1) // fill times
		e.Warm, e.Fills = findEachOther+time.Duration(used*float64(e.Fill())), 2
	}
	if e.Limit.Count() < 10 {
		e.Fills = 8 // of a few tokens each
	}
	return e
}

// denies says whether a row has more requests than even an ideal limiter admits.
func (r Row) denies() bool { return r.Experiment.Load == 0 || r.Experiment.Load > 1 }

// TestRows runs every row of the table of targets at reduced length. The promise
// and "never more than one operation per request" are held in each; costs and
// admissions are held to what the row has reached, with room for a short run.
func TestRows(t *testing.T) {
	for i, row := range append(Rows(), BriefRows()...) {
		if raceDetector && (i%2 == 0 || row.Experiment.Fill() > time.Second || row.Experiment.Rate > 0) {
			continue
		}
		name := strings.ReplaceAll(row.Name, "/", " per ") // a slash would divide it for -run
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m := Measured{Row: row}
			e := row.short()
			m.Balanced = e.Run(t)
			m.Strict = m.Balanced
			if row.denies() {
				e.Accuracy = hybrid.Strict
				m.Strict = e.Run(t)
			}
			m.check(t)
		})
	}
}

func (m *Measured) check(t *testing.T) {
	for _, f := range []*Figures{m.Balanced, m.Strict} {
		if err := f.Err(); err != nil {
			t.Errorf("%v\nagain: %s", err, f.Command())
		}
	}
	want := m.Targets.worse(m.Reached)
	got := Targets{m.Balanced.Operations(), m.Balanced.Waited(), m.Strict.Ratio()}
	t.Logf("operations %.4f, waited %.2f %%, admitted %.1f %%", got.Operations, 100*got.Blocked, 100*got.Admitted)
	if most := 1.3*want.Operations + 0.01; got.Operations > most {
		t.Errorf("%.4f operations per request, want at most %.4f", got.Operations, most)
	}
	if most := 1.5*want.Blocked + 0.01; want.Blocked > 0 && got.Blocked > most {
		t.Errorf("%.2f %% waited for the store, want at most %.2f %%", 100*got.Blocked, 100*most)
	}
	edges := 10 / float64(m.Strict.Ideal) // tokens that were free before, or will be later
	if least := want.Admitted - 0.05 - edges; got.Admitted < least {
		t.Errorf("admitted %.1f %% of the ideal, want at least %.1f %%", 100*got.Admitted, 100*least)
	}
}

// worse is the easier to reach of two targets; zeros of the second say nothing.
func (t Targets) worse(o Targets) Targets {
	t.Operations, t.Blocked = max(t.Operations, o.Operations), max(t.Blocked, o.Blocked)
	if o.Admitted > 0 {
		t.Admitted = min(t.Admitted, o.Admitted)
	}
	return t
}
