package sim

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/hybridlimit/hybrid"
)

// This file is values of the library as flags.

// limitValue is "1000/min", "1000/min:200" (with a burst) or "window:1000/min".
type limitValue struct{ to *hybrid.Limit }

var periods = []struct {
	name string
	of   time.Duration
}{{"s", time.Second}, {"min", time.Minute}, {"h", time.Hour}, {"d", 24 * time.Hour}}

func (v limitValue) String() string {
	if v.to == nil || *v.to == (hybrid.Limit{}) {
		return ""
	}
	l := *v.to
	period := l.Period().String()
	for _, p := range periods {
		if p.of == l.Period() {
			period = p.name
		}
	}
	text := fmt.Sprintf("%d/%s", l.Count(), period)
	switch {
	case l.Windowed():
		return "window:" + text
	case l.Burst() != l.Count():
		return fmt.Sprintf("%s:%d", text, l.Burst())
	}
	return text
}

func (v limitValue) Set(s string) error {
	wrong := errors.New("allowed COUNT/PERIOD, COUNT/PERIOD:BURST or window:COUNT/PERIOD, with s, min, h, d or a duration for PERIOD")
	text, windowed := strings.CutPrefix(s, "window:")
	text, burst, bursts := strings.Cut(text, ":")
	count, period, _ := strings.Cut(text, "/")
	n, err := strconv.ParseInt(count, 10, 64)
	d, err2 := periodOf(period)
	if err != nil || err2 != nil || windowed && bursts {
		return wrong
	}
	l := hybrid.Per(n, d)
	if windowed {
		l = hybrid.Window(n, d)
	}
	if bursts {
		b, err := strconv.ParseInt(burst, 10, 64)
		if err != nil {
			return wrong
		}
		l = l.WithBurst(b)
	}
	if err := l.Validate(); err != nil || n == 0 {
		return errors.Join(wrong, err)
	}
	*v.to = l
	return nil
}

func periodOf(name string) (time.Duration, error) {
	for _, p := range periods {
		if p.name == name {
			return p.of, nil
		}
	}
	return time.ParseDuration(name)
}

// accuracyValue is "balanced", "strict", "exact" or "within:OVER:UNDER".
type accuracyValue struct{ to *hybrid.Accuracy }

func (v accuracyValue) String() string {
	if v.to == nil {
		return ""
	}
	text := strings.ToLower(v.to.String()) // within(0.05, 0.1)
	return strings.NewReplacer("(", ":", ", ", ":", ")", "").Replace(text)
}

func (v accuracyValue) Set(s string) error {
	wrong := errors.New("allowed balanced, strict, exact or within:OVER:UNDER, both from 0 to 1")
	for _, a := range []hybrid.Accuracy{hybrid.Balanced, hybrid.Strict, hybrid.Exact} {
		if strings.EqualFold(a.String(), s) {
			*v.to = a
			return nil
		}
	}
	f := strings.Split(s, ":")
	if len(f) != 3 || f[0] != "within" {
		return wrong
	}
	over, err1 := strconv.ParseFloat(f[1], 64)
	under, err2 := strconv.ParseFloat(f[2], 64)
	if err1 != nil || err2 != nil || !(over >= 0 && over <= 1 && under >= 0 && under <= 1) {
		return wrong
	}
	*v.to = hybrid.Within(over, under)
	return nil
}

// policyValue is "local", "open" or "closed".
type policyValue struct{ to *hybrid.FailurePolicy }

var policies = []string{hybrid.FailLocal: "local", hybrid.FailOpen: "open", hybrid.FailClosed: "closed"}

func (v policyValue) String() string {
	if v.to == nil {
		return ""
	}
	return policies[*v.to]
}

func (v policyValue) Set(s string) error {
	for p, name := range policies {
		if name == s {
			*v.to = hybrid.FailurePolicy(p)
			return nil
		}
	}
	return errors.New("allowed local, open or closed")
}
