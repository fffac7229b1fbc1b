package sim

import (
	"strconv"
	"strings"
	"time"

	"github.com/hybridlimit/hybrid"
	"github.com/hybridlimit/hybrid/internal/oracle"
	"github.com/hybridlimit/hybrid/slice"
	"github.com/hybridlimit/hybrid/syncer"
)

// rule is the account of a key: the limit less what floors own of it.
func (e Experiment) rule() slice.Rule {
	dial := syncer.Dial{Over: e.Accuracy.Over(), Under: underOf(e.Accuracy), Slices: e.Accuracy != hybrid.Exact}
	return syncer.NewPlan(e.Limit.Rule(), dial).Rule
}

// underOf is the part of a limit that an accuracy may leave unspent.
func underOf(a hybrid.Accuracy) float64 {
	f := strings.Split(accuracyValue{&a}.String(), ":")
	if len(f) != 3 {
		return 0
	}
	under, _ := strconv.ParseFloat(f[2], 64) // as it was written
	return under
}

// tab is what the account of a key is judged by.
func (e Experiment) tab() *oracle.Tab {
	r := e.rule()
	return oracle.NewTab(oracle.NewAccount(float64(r.Burst), r.Rate/1e3, time.Duration(r.Window)*time.Microsecond))
}

// mostAudited keys are audited, the most popular.
const mostAudited = 16

// auditEvery is how often; no other timer is in step with it.
const auditEvery = 700*time.Millisecond + 137*time.Microsecond + 11

// audit compares the books of the store with what the judge has seen, again and
// again until a moment of the run.
func (f *fleet) audit(j *judge, names []string, start time.Time, until time.Duration) {
	rule := f.e.rule()
	for {
		time.Sleep(min(auditEvery, max(until-time.Since(start), 0)))
		for key := range names[:min(len(names), mostAudited)] {
			if g, err := f.backend.state(names[key], rule); err == nil {
				// What the store does in this microsecond counts as later.
				at := time.Now().UnixNano()/1000*1000 - 1
				j.happened(request{event: audited, at: at, key: int32(key), used: g.Used})
			}
		}
		if time.Since(start) >= until {
			return
		}
	}
}
