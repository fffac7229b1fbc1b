package main

import (
	"bytes"
	"strings"
	"testing"
	"time"
)

func TestLLMTokens(t *testing.T) {
	var out bytes.Buffer
	s, err := run(&out)
	if err != nil {
		t.Fatalf("%v\n%s", err, out.String())
	}
	t.Log("\n" + out.String())
	for _, want := range []string{"a reader that left", "used as Redis has it", "the next one is denied"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("the output lacks %q", want)
		}
	}
	if want := [2]settled{{1200, 780, 0, 420}, {1200, 1100, 0, 100}}; s.single != want {
		t.Errorf("one at a time: %+v, want %+v", s.single, want)
	}
	s.crowd.check(t)
	s.debt.check(t)
}

// Whatever the workers did at the same time, the books add up to the token.
func (c crowd) check(t *testing.T) {
	t.Helper()
	if c.booked() != c.used || c.inRedis != min(c.used, perMonth.Burst()) {
		t.Errorf("booked %d, used %d, %d as Redis has it", c.booked(), c.used, c.inRedis)
	}
	// What a denied worker lacked were the others' reservations, at most.
	if c.denied != workers || c.free >= workers*estimate {
		t.Errorf("%d of %d workers were denied, with %d tokens left", c.denied, workers, c.free)
	}
	// Estimates are never admitted beyond the limit; only what answers take beyond them is.
	if most := perMonth.Burst() + workers*(longest-estimate); c.used > most {
		t.Errorf("%d used of %d, want at most %d", c.used, perMonth.Burst(), most)
	}
	if c.refunded == 0 || c.charged == 0 {
		t.Errorf("nothing was refunded, or nothing charged: %+v", c)
	}
}

// A debt of one burst and the reservation itself take (B + cost) / r to drain, and
// nothing is admitted before.
func (d debt) check(t *testing.T) {
	t.Helper()
	if d.used != 10*perSecond.Burst() || d.booked() != d.used {
		t.Errorf("%+v: want ten bursts used, and charged", d)
	}
	most := time.Duration(float64(perSecond.Burst()+estimate) / float64(perSecond.Count()) * float64(time.Second))
	const late = 100 * time.Millisecond // nodes ask again now and then, not at every moment
	if d.denied == 0 || d.retry > most+late {
		t.Errorf("denied %d times, retry after %v, want at most %v", d.denied, d.retry, most)
	}
	if d.waited < d.retry {
		t.Errorf("admitted after %v, though %v were to pass", d.waited, d.retry)
	}
	if d.retry < most/2 {
		t.Errorf("retry after %v: the debt was less than a burst", d.retry)
	}
}
