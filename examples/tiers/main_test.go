package main

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"github.com/hybridlimit/hybrid"
)

// A plan that changes counts while it is in use: what is served then is more than
// the limit before allows, and never more than the limit at hand.
func TestTiers(t *testing.T) {
	var out bytes.Buffer
	s, err := run(&out)
	if err != nil {
		t.Fatalf("%v\n%s", err, out.String())
	}
	t.Log("\n" + out.String())
	for _, want := range []string{"ann upgrades to pro", "200 per 1s", "denied at the edge"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("the output lacks %q", want)
		}
	}
	before := map[string]row{}
	for _, r := range s.rows {
		checkAct(t, r, before[r.customer])
		before[r.customer] = r
	}
	if len(before) != 3 || before["ann"].limit != hybrid.PerSecond(200) || before["bob"].limit != hybrid.PerSecond(20) || before["carol"].limit != enterprise {
		t.Errorf("the limits in the end: %+v", before)
	}

	// The edge adds what Balanced may, 10 % on top.
	passed := scans - s.scan.atEdge
	bound := most(perAddress, s.scan.took) * (1 + hybrid.Balanced.Over())
	if passed < int(perAddress.Burst()) || float64(passed) > bound {
		t.Errorf("%d passed the edge, want %d to %.0f", passed, perAddress.Burst(), bound)
	}
}

func checkAct(t *testing.T, r, before row) {
	t.Helper()
	if got := float64(r.served); got > most(r.limit, r.took) {
		t.Errorf("%+v: more served than %v allows in that time", r, r.limit)
	}
	switch {
	case r.customer == "carol" && r.served != r.offered:
		t.Errorf("%+v: enterprise allows all of it", r)
	case before.limit != (hybrid.Limit{}) && before.limit != r.limit && float64(r.served) <= most(before.limit, r.took):
		t.Errorf("%+v: the limit is still %v", r, before.limit)
	case r.served == 0:
		t.Errorf("%+v: nothing is served", r)
	}
}

// most is what a limit allows in an interval.
func most(l hybrid.Limit, d time.Duration) float64 {
	return float64(l.Burst()) + float64(l.Count())*float64(d)/float64(l.Period())
}
