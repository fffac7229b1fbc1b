package chaos

import (
	"fmt"
	"strings"

	"github.com/hybridlimit/hybrid"
	"github.com/hybridlimit/hybrid/internal/oracle"
)

// rounding is what the store's numbers may be wrong by, and what a slow limit
// refills in a test.
const rounding = 0.1

// losses is both sides of a loss, in tokens.
type losses struct {
	lost, hotLost     float64 // what the lost writes had granted; of the saturated key
	beyond, hotBeyond float64 // what was admitted beyond the limits by the store
	admitted          int
	byPolicy          int
	bad               []string
}

// judgeLosses holds the admissions of each account against its limit. Beyond it
// there may be as much as the lost writes had granted; with FailLocal one limit
// more, which the policy admitted. It prints both sides.
func (r *topologyRun) judgeLosses(lost usage) {
	r.t.Helper()
	var all losses
	for _, p := range policies {
		l := r.lossesOf(p, lost)
		r.complain(l.bad)
		r.t.Logf("%v: lost writes had granted %.0f, of the hot key %.0f; beyond the limit were admitted %.0f, of the hot key %.0f; admitted in all %d, by policy %d",
			p, l.lost, l.hotLost, l.beyond, l.hotBeyond, l.admitted, l.byPolicy)
		all.lost, all.hotLost, all.beyond, all.hotBeyond = all.lost+l.lost, all.hotLost+l.hotLost, all.beyond+l.beyond, all.hotBeyond+l.hotBeyond
	}
	if all.hotLost < 50 || all.lost < all.hotLost+50 || all.hotBeyond == 0 {
		r.t.Errorf("next to nothing was lost, so nothing is proved: %+v", all)
	}
}

// lossesOf judges the keys of one limiter.
func (r *topologyRun) lossesOf(p hybrid.FailurePolicy, lost usage) (l losses) {
	r.t.Helper()
	covered, all := r.out.admissions()
	limit := oracle.New(r.out.limit.Count(), r.out.limit.Period(), r.out.limit.Burst())
	for acc, list := range all {
		if acc.policy != p {
			continue
		}
		granted := lost[accountName(p.String(), acc.key)]
		beyond := max(0, limit.Check(covered[acc]).Excess)
		if beyond > granted+rounding {
			l.bad = append(l.bad, fmt.Sprintf("%v, %s: %.1f beyond the limit, and the lost writes had granted %.1f", p, acc.key, beyond, granted))
		}
		if excess := limit.Check(list).Excess; p == hybrid.FailLocal && excess > granted+float64(r.out.limit.Burst())+rounding {
			l.bad = append(l.bad, fmt.Sprintf("%v, %s: %.1f beyond the limit with what the policy admitted, and the lost writes had granted %.1f", p, acc.key, excess, granted))
		}
		l.lost, l.beyond = l.lost+granted, l.beyond+beyond
		l.admitted, l.byPolicy = l.admitted+len(list), l.byPolicy+len(list)-len(covered[acc])
		if strings.HasSuffix(acc.key, "-hot") {
			l.hotLost, l.hotBeyond = granted, beyond
		}
	}
	return l
}

// judgeBooks fails the test unless the store knows of every admission that it made
// or covered, but for what the lost writes had granted.
func (r *topologyRun) judgeBooks(used, lost usage) {
	r.t.Helper()
	covered, _ := r.out.admissions()
	missing, known, bad := 0.0, 0, []string(nil)
	for acc, list := range covered {
		name := accountName(acc.policy.String(), acc.key)
		gone := float64(len(list)) - used[name]
		missing += max(0, gone)
		known += len(list)
		if gone > lost[name]+rounding {
			bad = append(bad, fmt.Sprintf("%v, %s: of %d admissions the store knows %.1f, and the lost writes had granted %.1f", acc.policy, acc.key, len(list), used[name], lost[name]))
		}
	}
	r.complain(bad)
	r.t.Logf("of %d admissions the store does not know %.0f any more; the lost writes had granted %.0f", known, missing, lost.sum())
}
