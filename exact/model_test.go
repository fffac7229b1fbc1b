package exact

import (
	"fmt"
	"maps"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/hybridlimit/hybrid/slice"
)

// model is the account as the design describes it, in plain Go: loops where
// the script has closed forms, and a map of leases where it has two slots.
type model struct {
	used  float64
	ts    int64
	lent  map[int64]int64 // by epoch
	found bool
	bad   bool // the stored state is unreadable

	written time.Time     // just before the last write
	life    time.Duration // time to live of the last write
}

func (m *model) clone() model {
	c := *m
	c.lent = maps.Clone(m.lent)
	return c
}

func epochOf(us int64) int64 { return us / slice.Epoch }

func (m *model) out() float64 {
	sum := int64(0)
	for _, n := range m.lent {
		sum += n
	}
	return float64(sum)
}

// drain goes from epoch end to epoch end; after two, nothing is lent.
func (m *model) drain(now int64, rate float64) {
	for ends := 0; ends < 2 && epochOf(m.ts) < epochOf(now); ends++ {
		e := epochOf(m.ts)
		end := (e + 1) * slice.Epoch
		m.pass(end, rate)
		delete(m.lent, e-1)
	}
	m.pass(now, rate)
}

func (m *model) pass(to int64, rate float64) {
	drained := float64(rate * float64(to-m.ts))
	m.used = max(m.out(), m.used-drained)
	m.ts = to
}

func (m *model) empty(ts int64) {
	*m = model{ts: ts, lent: map[int64]int64{}, found: m.found}
}

// settle applies e at the given TIME. wrote is false if the account must not be touched in Redis.
func (m *model) settle(clock int64, e *slice.Settle) (g slice.Grant, wrote bool) {
	r, u := e.Rule, e.Usage
	if m.lent == nil {
		m.lent = map[int64]int64{}
	}
	if m.bad || !m.found {
		g.Rebuilt = m.bad
		m.empty(clock)
	}
	beyond := m.excess(r)
	now := max(clock, m.ts)
	epoch, window := epochOf(now), int64(0)
	if r.Window > 0 {
		window = now / r.Window
		if m.ts/r.Window != window {
			m.empty(now)
		}
		m.drain(now, 0)
	} else {
		m.drain(now, r.Rate)
	}

	if u.Tag.Epoch > 0 {
		if u.Tag.Epoch < epoch-1 || r.Window > 0 && u.Tag.Window != window {
			g.Dropped = true
		} else if x := u.Spent + u.Returned + u.Held; x > 0 {
			covered := int64(0)
			if u.Tag.Epoch <= epoch {
				covered = min(x, m.lent[u.Tag.Epoch])
			}
			m.lent[u.Tag.Epoch] -= covered
			m.lent[epoch] += u.Held
			m.used = max(m.out(), m.used+float64(x-covered)-float64(u.Returned))
			wrote = true
		}
	}
	if u.Charged != 0 || u.Fallback != 0 {
		if r.Window == 0 || u.Tag.Window == 0 || u.Tag.Window == window {
			m.charge(r, u)
			wrote = true
		}
	}

	beyond = min(beyond, m.used-m.out())
	m.used -= beyond
	refused := false
	for _, n := range u.Needs {
		k := m.fit(float64(r.Burst), n)
		m.used += float64(float64(k) * float64(n.Cost))
		g.Admitted = append(g.Admitted, k)
		wrote = wrote || k > 0
		refused = refused || k < n.Count
	}
	if !refused && u.Want > 0 {
		g.Granted = m.grant(r, u, epoch)
		wrote = wrote || g.Granted > 0
	}

	for e, n := range m.lent {
		if n == 0 {
			delete(m.lent, e)
		}
	}
	g.Used, g.Lent, g.Now, g.Clock = m.used, int64(m.out()), now, clock
	m.used += beyond
	if wrote {
		g.Used = m.used - m.excess(r)
	}
	g.Tag = slice.Tag{Epoch: epoch, Window: window}
	g.Life = (epoch+2)*slice.Epoch - now
	if r.Window > 0 {
		g.Life = min(g.Life, (window+1)*r.Window-now)
	}
	return g, wrote
}

// excess is what a higher limit used, by the limit r.
func (m *model) excess(r slice.Rule) float64 {
	if r.Window > 0 || m.used <= 2*float64(r.Burst) {
		return 0
	}
	return m.used - max(m.out(), float64(r.Burst))
}

func (m *model) charge(r slice.Rule, u slice.Usage) {
	before, b := m.used, float64(r.Burst)
	m.used = max(m.out(), m.used+u.Charged)
	if u.Charged > 0 {
		m.used = min(m.used, max(before, 2*b))
	}
	if u.Fallback > 0 && m.used < b {
		m.used = min(b, m.used+u.Fallback)
	}
}

// fit finds the most of a run that fits by bisection.
func (m *model) fit(burst float64, n slice.Need) int64 {
	lo, hi := int64(0), min(n.Count, slice.MaxTokens/n.Cost)
	for lo < hi {
		mid := lo + (hi-lo+1)/2
		if c := float64(mid * n.Cost); m.used+c <= burst && c <= burst-m.used {
			lo = mid
		} else {
			hi = mid - 1
		}
	}
	return lo
}

func (m *model) grant(r slice.Rule, u slice.Usage, epoch int64) int64 {
	share := math.Floor((float64(r.Burst) - m.used) / float64(u.Divisor))
	if share <= 0 {
		return 0
	}
	g := min(u.Want, slice.MaxSlice, int64(min(share, slice.MaxTokens)))
	if g -= g % u.Unit; g < u.Least {
		return 0
	}
	m.used += float64(g)
	m.lent[epoch] += g
	return g
}

// ttl is the least time to live in ms that a key written now must have.
func (m *model) ttl(r slice.Rule, g slice.Grant) int64 {
	us := float64(g.Now - g.Clock)
	if r.Window > 0 {
		us += float64((g.Tag.Window+1)*r.Window - g.Now)
	} else {
		us += min(m.used, 2*float64(r.Burst)) / r.Rate
		if g.Lent > 0 {
			us += float64((g.Tag.Epoch+2)*slice.Epoch - g.Now)
		}
	}
	return int64(max(1, min(9e12, math.Ceil(us/1000))))
}

// text is the stored form.
func (m *model) text() string {
	var slot [2]int64
	for e, n := range m.lent {
		slot[e%2] += n
	}
	return fmt.Sprintf("%s %d %d %d", g17(m.used), m.ts, slot[0], slot[1])
}

// g17 is C's %.17g for what accounts hold.
func g17(v float64) string {
	s := strconv.FormatFloat(v, 'g', 17, 64)
	if !strings.ContainsAny(s, "e") {
		if strings.Contains(s, ".") {
			s = strings.TrimRight(strings.TrimRight(s, "0"), ".")
		}
	}
	return s
}

// parse is the reading of a stored state, by rules of its own: four fields, sane numbers.
func parse(text string) (m model) {
	m.found, m.lent = true, map[int64]int64{}
	f := strings.Split(text, " ")
	if len(f) != 4 || strings.Trim(text, "0123456789 .e+-") != "" || strings.Trim(f[1]+f[2]+f[3], "0123456789") != "" {
		m.bad = true
		return m
	}
	used, err := strconv.ParseFloat(f[0], 64)
	ts, err1 := strconv.ParseInt(f[1], 10, 64)
	l0, err2 := strconv.ParseInt(f[2], 10, 64)
	l1, err3 := strconv.ParseInt(f[3], 10, 64)
	if err != nil || err1 != nil || err2 != nil || err3 != nil || ts > slice.MaxTokens-3*slice.Epoch || !(used <= 1e18) || float64(l0)+float64(l1) > used {
		m.bad = true
		return m
	}
	m.used, m.ts = used, ts
	e := epochOf(ts)
	for _, epoch := range []int64{e - 1, e} {
		if n := [2]int64{l0, l1}[((epoch%2)+2)%2]; n > 0 {
			m.lent[epoch] = n
		}
	}
	return m
}
