package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// mechanism is a part of the protocol that has to earn its lines: what it is for, and the
// change that leaves it out.
type mechanism struct {
	name, file string
	from, to   string
}

var mechanisms = []mechanism{
	{"reclaiming of scarce tokens", "internal/key/reclaim.go", "\tt.Scarce = cost\n", ""},
	{"return of idle slices", "internal/key/look.go", "case t.Now-s.hold.idleSince >= horizon:", "case false:"},
	{"retry times that are kept", "internal/key/polling.go", "ends = min(ends, p.promisedRetryAt)", "_ = ends"},
	{"half of what is free, near the limit", "internal/key/compose.go", "case t.Known.Free(t.Plan, t.Now)/w.divisor < goal:", "case false:"},
	{"poll interval by demand", "internal/key/sizing.go", "p := clampNanos(min(pollCosts*float64(m)*float64(c)/rate, pollRequests*gap))", "p := fill / 20"},
	{"floor before a refill", "internal/key/look.go", "case s.floorServes(t):", "case false:"},
	{"refill before a slice is empty", "internal/key/sizing.go", "return min(int64(math.Round(d.over(span, horizon))), tokens/2)", "return span * 0"},
	{"background calls apart", "internal/batch/shard.go", "func (s *Shard) SubmitLater(j Job) {", "func (s *Shard) SubmitLater(j Job) { s.Submit(j) }\n\nfunc (s *Shard) unused(j Job) {"},
}

// ablatedRows are the loads that tell them apart.
const ablatedRows = `^(1000/min, (uniform, (95|140) %|uniform, 10×|one node|hopping|node with|calm)|100/min, (uniform, 140 %|hopping node, 140 %)|window of 1000/min|1000/s, (uniform, 140 %|hopping))`

// runAblate leaves out one mechanism after the other and prints what becomes of the table.
func runAblate(_ *testing.T, args []string) error {
	fs := newFlags("ablate")
	seeds := fs.Int("seeds", 3, "`number` of seeds")
	only := fs.String("only", ablatedRows, "`pattern` of the rows to run")
	if err := parse(fs, args); err != nil {
		return err
	}
	if *seeds < 1 || *seeds > 1000 {
		return fmt.Errorf("seeds: %d, allowed 1 to 1000", *seeds)
	}
	dir, err := os.MkdirTemp("", "ablate")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	whole, err := mechanism{}.figures(dir, *only, *seeds)
	if err != nil {
		return err
	}
	fmt.Println("| left out | operations, buckets | windows | waited, points | admitted, points: worst bucket | worst window |")
	fmt.Println("|---|---|---|---|---|---|")
	for _, m := range mechanisms {
		without, err := m.figures(dir, *only, *seeds)
		if err != nil {
			return fmt.Errorf("%s: %w", m.name, err)
		}
		fmt.Printf("| %s | %s |\n", m.name, compare(whole, without))
	}
	return nil
}

// figures runs the table without a mechanism; the zero value leaves out none.
func (m mechanism) figures(dir, only string, seeds int) (all []tableRow, err error) {
	lab := filepath.Join(dir, "lab")
	build := []string{"build", "-o", lab}
	if m.file != "" {
		overlay, err := m.overlay(dir)
		if err != nil {
			return nil, err
		}
		build = append(build, "-overlay", overlay)
	}
	if out, err := exec.Command("go", append(build, "./lab")...).CombinedOutput(); err != nil {
		return nil, fmt.Errorf("%w: %s", err, out)
	}
	for seed := range seeds {
		out, err := exec.Command(lab, "table", "-json", "-only", only, "-seed", fmt.Sprint(seed+1)).Output()
		var rows []tableRow
		if bad := json.Unmarshal(out, &rows); bad != nil {
			return nil, errors.Join(err, bad)
		}
		all = append(all, rows...)
	}
	return all, nil
}

// overlay writes the source without the mechanism, and what tells the go command of it.
func (m mechanism) overlay(dir string) (path string, err error) {
	source, err := filepath.Abs(m.file)
	if err != nil {
		return "", err
	}
	text, err := os.ReadFile(source)
	if err != nil {
		return "", fmt.Errorf("%w: run it in the root of the repository", err)
	}
	if n := strings.Count(string(text), m.from); n != 1 {
		return "", fmt.Errorf("%s has %q %d times, want once", m.file, m.from, n)
	}
	without, path := filepath.Join(dir, "without.go"), filepath.Join(dir, "overlay.json")
	list, err := json.Marshal(map[string]map[string]string{"Replace": {source: without}})
	if err != nil {
		return "", err
	}
	return path, errors.Join(os.WriteFile(without, []byte(strings.Replace(string(text), m.from, m.to, 1)), 0o600), os.WriteFile(path, list, 0o600))
}

// compare says how much worse rows are without a mechanism.
func compare(whole, without []tableRow) string {
	var ops, before [2]float64 // of buckets and windows
	worst, where := [2]float64{}, [2]string{"–", "–"}
	waited := 0.0
	for i, w := range whole {
		o, kind := without[i], 0
		if strings.HasPrefix(w.Name, "window") {
			kind = 1
		}
		before[kind] += w.Operations
		ops[kind] += o.Operations
		waited += 100 * (o.Waited - w.Waited) / float64(len(whole))
		if lost := 100 * (o.Admitted - w.Admitted); lost < worst[kind] {
			worst[kind], where[kind] = lost, fmt.Sprintf("%+.1f (%s)", lost, w.Name)
		}
	}
	return fmt.Sprintf("%+.0f %% | %+.0f %% | %+.2f | %s | %s", 100*(ops[0]/before[0]-1), 100*(ops[1]/before[1]-1), waited, where[0], where[1])
}
