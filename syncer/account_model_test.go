package syncer

import (
	"math"

	"github.com/hybridlimit/hybrid/slice"
)

// ledger is one account of the store in plain Go: what the design says, with a
// map of leases by epoch where the script has two slots.
type ledger struct {
	used float64
	ts   int64           // µs of the last write
	lent map[int64]int64 // tokens out on lease, by epoch
}

func (m *ledger) out() float64 {
	sum := int64(0)
	for _, n := range m.lent {
		sum += n
	}
	return float64(sum)
}

func (m *ledger) pass(to int64, rate float64) {
	m.used = max(m.out(), m.used-rate*float64(to-m.ts))
	m.ts = to
}

// advance brings the account to now: each epoch end drains first and then
// forgets the leases of the epoch before; a new window forgets everything.
func (m *ledger) advance(now int64, r slice.Rule) {
	rate := r.Rate
	if r.Window > 0 {
		rate = 0
		if m.ts/r.Window != now/r.Window {
			*m = ledger{ts: now, lent: map[int64]int64{}}
		}
	}
	for ends := 0; ends < 2 && m.ts/slice.Epoch < now/slice.Epoch; ends++ {
		e := m.ts / slice.Epoch
		m.pass((e+1)*slice.Epoch, rate)
		delete(m.lent, e-1)
	}
	m.pass(now, rate)
}

// settle executes one settle at a moment of the store's clock.
func (m *ledger) settle(clock int64, r slice.Rule, u slice.Usage) slice.Grant {
	if m.lent == nil {
		m.ts, m.lent = clock, map[int64]int64{}
	}
	now := max(clock, m.ts)
	m.advance(now, r)
	g := slice.Grant{Now: now, Clock: clock, Tag: slice.Tag{Epoch: now / slice.Epoch}}
	g.Life = (g.Tag.Epoch+2)*slice.Epoch - now
	if r.Window > 0 {
		g.Tag.Window = now / r.Window
		g.Life = min(g.Life, (g.Tag.Window+1)*r.Window-now)
	}
	g.Dropped = !m.report(u, g.Tag, r)
	m.charge(u, g.Tag, r)
	refused := m.admit(u, r, &g)
	if !refused && u.Want > 0 {
		g.Granted = m.grant(u, r, g.Tag.Epoch)
	}
	g.Used, g.Lent = m.used, int64(m.out())
	return g
}

// report books the slice; false if its lease is too old.
func (m *ledger) report(u slice.Usage, now slice.Tag, r slice.Rule) bool {
	if u.Tag.Epoch == 0 {
		return true
	}
	if u.Tag.Epoch < now.Epoch-1 || r.Window > 0 && u.Tag.Window != now.Window {
		return false
	}
	x := u.Spent + u.Returned + u.Held
	covered := min(x, m.lent[u.Tag.Epoch])
	m.lent[u.Tag.Epoch] -= covered
	m.lent[now.Epoch] += u.Held
	m.used = max(m.out(), m.used+float64(x-covered-u.Returned))
	return true
}

func (m *ledger) charge(u slice.Usage, now slice.Tag, r slice.Rule) {
	if r.Window > 0 && u.Tag.Window != 0 && u.Tag.Window != now.Window {
		return
	}
	before, b := m.used, float64(r.Burst)
	m.used = max(m.out(), m.used+u.Charged)
	if u.Charged > 0 {
		m.used = min(m.used, max(before, 2*b))
	}
	m.used = max(m.used, min(b, m.used+u.Fallback))
}

func (m *ledger) admit(u slice.Usage, r slice.Rule, g *slice.Grant) (refused bool) {
	for _, n := range u.Needs {
		k := min(n.Count, int64(max(math.Floor((float64(r.Burst)-m.used)/float64(n.Cost)), 0)))
		m.used += float64(k * n.Cost)
		g.Admitted = append(g.Admitted, k)
		refused = refused || k < n.Count
	}
	return refused
}

func (m *ledger) grant(u slice.Usage, r slice.Rule, epoch int64) int64 {
	share := math.Floor((float64(r.Burst) - m.used) / float64(u.Divisor))
	g := min(u.Want, int64(share))
	g -= g % u.Unit
	if g < u.Least || g <= 0 {
		return 0
	}
	m.used += float64(g)
	m.lent[epoch] += g
	return g
}
