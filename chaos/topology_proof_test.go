package chaos

import (
	"fmt"
	"testing"

	"github.com/hybridlimit/hybrid"
)

// A part of a run of which the machine excuses nearly all proves nothing, and is
// told: it is played again. What it excuses is not counted as proof.
func TestExcusedSharesProveNothing(t *testing.T) {
	all := func(*answer) bool { return true }
	o := sound()
	o.expect.down = never
	for i := range o.answers {
		o.answers[i].path = hybrid.PathExact
	}
	o.sort()
	if s := o.shareOf(0, o.stopped, all); !s.proves(leastJudged) || s.blamed() > 0 {
		t.Errorf("a sound run: %v", s)
	}
	for i := range o.answers {
		o.answers[i].byPolicy()
	}
	if s := o.shareOf(0, o.stopped, all); !s.proves(leastJudged) || s.blamed() < 100 {
		t.Errorf("all by policy: %v", s)
	}
	for at := 50 * ms; at < o.stopped; at += 100 * ms {
		stillAt(o, at, 12*ms)
	}
	o.sort()
	s := o.shareOf(0, o.stopped, all)
	if s.proves(leastJudged) {
		t.Errorf("all by policy, in stalls: %v", s)
	}
	r := &topologyRun{t: t}
	if r.judgeShare("all", s, leastJudged, 2); len(r.unproved) != 1 {
		t.Errorf("not told: %q", r.unproved)
	}
}

// On the busiest machine a tenth of the requests may miss their time, and no more.
func TestAccidentsAreFew(t *testing.T) {
	for late, want := range map[int]float64{0: 2, 9: 5, 300: 10} {
		t.Run(fmt.Sprint(late), func(t *testing.T) {
			o := sound()
			for i := range o.controls[:min(late, len(o.controls))] {
				o.controls[i].by = 6 * ms
			}
			if most := o.mostByAccident(0, o.stopped); most < want-0.1 || most > want+0.1 {
				t.Errorf("%.2f %%, want %v", most, want)
			}
		})
	}
}
