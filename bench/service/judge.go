package service

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/hybridlimit/hybrid/internal/oracle"
)

// verdict is what a replay of all admissions says.
type verdict struct {
	outcome oracle.Outcome
	nearest finding // the key that came nearest to its bound, or went beyond it
	most    finding // the key that went furthest beyond the limit itself
}

// finding is the worst interval of one key.
type finding struct {
	key    int32
	report oracle.Report
	excess float64 // of the report, less what the time that a call took leaves open
}

func (f finding) broken() bool { return f.excess > 0 && !f.report.Held() }

// worse is the finding that went further.
func worse(a, b finding) finding {
	if a.key == 0 || b.excess > a.excess {
		return b
	}
	return a
}

// judge replays every key, also of the warm-up. It leaves the requests sorted by key.
// Requests that the failure policy answered (its path, or −1) are outside of the bound.
func (p Plan) judge(requests []request, over float64, policy int) verdict {
	slices.SortFunc(requests, func(a, b request) int {
		return cmp.Or(cmp.Compare(a.key, b.key), cmp.Compare(a.began, b.began))
	})
	limit := oracle.New(p.Limit, p.Period, p.Limit)
	var v verdict
	for len(requests) > 0 {
		n := 1
		for n < len(requests) && requests[n].key == requests[0].key {
			n++
		}
		v.judgeKey(limit, over, policy, requests[:n])
		requests = requests[n:]
	}
	return v
}

// judgeKey replays one key. A request was admitted at some moment from its call to its
// answer: an interval may have been longer than it looks by the longest call, and what
// refills in that time proves nothing.
func (v *verdict) judgeKey(limit oracle.Limit, over float64, policy int, requests []request) {
	replay := make([]oracle.Request, 0, len(requests))
	var admitted []oracle.Admission
	var open time.Duration
	for i := range requests {
		r := &requests[i]
		if r.node == witness || !r.made() {
			continue
		}
		replay = append(replay, oracle.Request{At: r.began, Cost: 1, Allowed: r.allowed})
		if r.allowed && int(r.path) != policy {
			admitted = append(admitted, oracle.Admission{At: r.began, Cost: 1})
			open = max(open, time.Duration(r.took))
		}
	}
	if len(replay) == 0 {
		return
	}
	v.outcome.Add(limit.Compare(replay))
	check := func(l oracle.Limit) finding {
		r := l.Check(admitted)
		return finding{requests[0].key, r, r.Excess - (l.Bound(open) - l.Bound(0))}
	}
	v.most = worse(v.most, check(limit))
	v.nearest = worse(v.nearest, check(limit.Over(over)))
}

// err is nil if every key kept to its bound.
func (v verdict) err() error {
	if v.nearest.broken() {
		return fmt.Errorf("the bound is broken by user:%d: %v", v.nearest.key, v.nearest.report)
	}
	return nil
}
