package tests_test

import (
	"encoding/json"
	"flag"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

var plant = flag.Bool("flaws", false, "put faults that there were once back into the library, one by one, and see that the tests find each")

// flaw is a fault that there was once: the lines that brought it back, and the tests that
// must find it.
type flaw struct {
	name, file string
	from, to   string
	tests      string
}

var flaws = []flaw{
	{"what AllowAll gives back is there twice", "internal/key/adjust.go",
		"at-t.Timing.Latency/1000", "1<<52",
		"TestWhatAllowAllGivesBackLateHasDrained"},
	{"what AllowAll gives back is told some time", "internal/key/adjust.go",
		"s.begin(t, purpose{}, SendNow)\n\t} else if", "t.timer(EnsureTimer, t.Now+t.jittered(int64(ProbeInterval)*1000))\n\t} else if",
		"TestWhatAllowAllGivesBack"},
	{"what AllowAll gives back goes into any window", "internal/key/adjust.go",
		"if window != t.window() || t.Plan.Always {\n\t\treturn\n\t}", "if t.Plan.Always {\n\t\treturn\n\t}\n\ttakenAt, window = t.Now, t.window()",
		"TestWhatAllowAllGivesBackStaysInItsWindow"},
	{"what AllowAll gives back is dropped", "internal/key/adjust.go",
		"if tokens == 0 || at == 0 {", "if true {",
		"TestTheBooksAreExact|TestWhatAllowAllGivesBackIsThereForOthers"},
	{"AllowAll gives nothing back while its node closes", "syncer/adjust.go",
		"l.end.closed.Load() && !closing", "l.end.closed.Load()",
		"TestAllowAllWhileItsNodeCloses"},
	{"an evicted key is forgotten with what it holds", "syncer/entry.go",
		"if s.Evict(t); !t.Idle {", "if s.Evict(t); false {",
		"TestClosingWaitsForTheSlicesOfTheEvicted"},
	{"a key that finds no place is forgotten with what it owes", "syncer/account.go",
		"if a.Known.Untracked {\n\t\t\ta.limiter().outside.add(a)\n\t\t}", "",
		"TestClosingSettlesWhatFoundNoRoom"},
	{"Flush leaves out keys without a place", "syncer/limiter.go",
		"\tl.outside.each(do)\n}", "}",
		"TestClosingSettles|TestTheBooksAreExact"},
	{"Reset leaves what an evicted key owes", "syncer/adjust.go",
		"if a.name == name {", "if false {",
		"TestResetForgetsWhatAnEvictedKeyOwes"},
	{"Reset asks for no plan", "syncer/adjust.go",
		"\t\ta.askPlan(b, now)\n\t}\n\ta.lock()", "\t}\n\ta.lock()",
		"TestResetAsksForThePlan"},
	{"a charge leaves the floor open", "internal/key/floor.go",
		"return s == nil || s.debt.charged <= 0", "return true",
		"TestAChargeIsNoticedBehindTheFloor"},
	{"a raised plan wakes nobody", "syncer/plans.go",
		"if changed && b.limiter.changed != nil {", "if false && changed {",
		"TestARaisedPlanWakesWhoWaits"},
	{"a silent slice is not reclaimed", "internal/key/reclaim.go",
		"\tif claimed {\n\t\ts.budget.add(1)\n\t}\n", "",
		"TestASilentSliceIsReclaimed"},
	{"an outage goes on with the share of the last one", "internal/key/apply.go",
		"if s.debt.admitted == 0 {", "if false {",
		"TestEachOutageSharesWhatIsFreeThen"},
	{"keys without a place have a share each", "syncer/account.go",
		"t.Shared = &l.shared.bucket", "",
		"TestKeysWithoutAPlaceShareOneShare"},
}

// A suite that cannot fail shows nothing. (It builds the library anew for each flaw, so it
// has a flag of its own: go test ./tests -run TestPlantedFlawsAreFound -flaws.)
func TestPlantedFlawsAreFound(t *testing.T) {
	for _, f := range flaws {
		if f.overlay(t); !*plant {
			continue // the lines are there still
		}
		t.Run(f.name, func(t *testing.T) {
			out, err := exec.Command("go", "test", "-count=1", "-timeout=25s", "-overlay", f.overlay(t), "-run", f.tests, ".").CombinedOutput()
			switch text := string(out); {
			case err == nil:
				t.Errorf("%s does not find it", f.tests)
			case !strings.Contains(text, "--- FAIL") && !strings.Contains(text, "panic: test timed out"):
				t.Errorf("the flaw cannot be built or run:\n%s", text)
			default:
				t.Logf("found: %s", firstFinding(text))
			}
		})
	}
}

// overlay writes the flaw beside the source, and a file that tells the go command of it.
func (f *flaw) overlay(t *testing.T) (path string) {
	t.Helper()
	source, err := filepath.Abs(filepath.Join("..", f.file))
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(source)
	if err != nil {
		t.Fatal(err)
	}
	if n := strings.Count(string(text), f.from); n != 1 {
		t.Fatalf("%s has these lines %d times, want once: the flaw has to follow the code:\n%s", f.file, n, f.from)
	}
	dir := t.TempDir()
	flawed, path := filepath.Join(dir, "flawed.go"), filepath.Join(dir, "overlay.json")
	list, err := json.Marshal(map[string]map[string]string{"Replace": {source: flawed}})
	if err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{flawed: strings.Replace(string(text), f.from, f.to, 1), path: string(list)} {
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return path
}

// firstFinding is the first line in which a test says what is wrong.
func firstFinding(text string) string {
	for line := range strings.Lines(text) {
		if strings.Contains(line, "_test.go:") {
			return strings.TrimSpace(line)
		}
	}
	return "the test does not end"
}
