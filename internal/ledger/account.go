package ledger

import "github.com/hybridlimit/hybrid/slice"

// Account is what the store keeps of one key. The zero Account is one that is
// not stored, which is as good as empty. Accounts that compare equal behave
// alike, so they can be keys of a map.
type Account struct {
	Stored  bool // there is a key; without one the other fields are 0
	Damaged bool // its value is unreadable, and counts as lost

	At    int64   // µs of the store's clock at the last write
	Used  float64 // tokens taken and not drained yet, ≥ Lent
	Young float64 // tokens lent in the epoch of At, a whole number
	Old   float64 // tokens lent in the epoch before, a whole number
}

const (
	maxTTL  = 9e12                            // ms; above it, servers overflow
	maxUsed = 1e18                            // no account holds more
	maxAt   = slice.MaxTokens - 3*slice.Epoch // µs; up to there the ends of epochs are exact

	maxAhead = 2 * slice.Epoch // µs that an account may be ahead of the store's clock
)

func epochOf(us int64) int64 { return us / slice.Epoch }

// Lent returns the tokens out on lease.
func (a *Account) Lent() float64 { return a.Young + a.Old }

// Settle executes one settle at a moment of the store's clock (µs since the
// Unix epoch). The usage must be [Sound]. A settle that changes nothing writes
// nothing and leaves the account as it was. The only allocation is g.Admitted.
func (a *Account) Settle(clock int64, r slice.Rule, u slice.Usage) (g slice.Grant, wrote bool) {
	b, sound := a.found(clock) // becomes what a write would leave
	g.Rebuilt, wrote = !sound, a.ahead(clock)
	beyond := b.advance(max(clock, b.At), r)
	g.Clock = clock
	b.stamp(&g, r)

	switch {
	case u.Tag.Epoch == 0:
	case stale(u.Tag, g.Tag, r):
		g.Dropped = true
	default:
		booked, goesOn := b.report(r, &u)
		g.Dropped, wrote = !goesOn, wrote || booked
	}
	wrote = b.charge(r, &u, g.Tag) || wrote

	beyond = min(beyond, b.Used-b.Lent())
	b.Used -= beyond
	admitted, refused := b.admit(r, u.Needs, beyond, &g)
	if !refused && u.Want > 0 {
		g.Granted = b.grant(r, &u)
	}
	wrote = wrote || admitted || g.Granted > 0
	g.Used, g.Lent = b.Used, int64(b.Lent())
	if wrote {
		b.Used += beyond
		g.Used = b.Used - b.excess(r) // as the next reader will see it
		*a = b.stored()
	}
	return g, wrote
}

// readable is false for an account that the next settle replaces, as if it had
// been lost, and for one that is not stored.
func (a *Account) readable() bool {
	return a.Stored && !a.Damaged && a.Used <= maxUsed && a.At <= maxAt
}

// ahead reports whether an account is of a time that the store's clock is not
// about to reach: the clock has stepped back, or somebody wrote nonsense.
func (a *Account) ahead(clock int64) bool { return a.readable() && a.At > clock+maxAhead }

// found is the account as a settle finds it, and whether it was sound. One that
// stands ahead of the clock would stand still until the clock is there: it is
// taken to be of now, without the leases of a time that is still to come.
func (a *Account) found(clock int64) (b Account, sound bool) {
	switch {
	case !a.readable():
		return Account{At: clock}, !a.Stored
	case a.ahead(clock):
		return Account{Stored: true, At: clock, Used: a.Used - a.Lent()}, false
	}
	return *a, true
}

// stored is the account once it is written: an empty one is no key at all.
func (a *Account) stored() Account {
	if a.Used <= 0 {
		return Account{}
	}
	b := *a
	b.Stored = true
	return b
}

// excess is what a higher limit used, by the limit r: more than 2·B is no debt.
// By r the account was just full when it was last written, and nobody is denied
// for more. It stays stored for those who still have the higher limit.
func (a *Account) excess(r slice.Rule) float64 {
	if r.Window > 0 || a.Used <= 2*float64(r.Burst) {
		return 0
	}
	return a.Used - max(a.Lent(), float64(r.Burst))
}

// advance brings the account to now, and returns what a higher limit used. At
// each end of an epoch it drains first, and then forgets the leases that have
// been good until there: without them, more may be beyond the limit. After two
// ends nothing is lent, so no gap needs more steps.
func (a *Account) advance(now int64, r slice.Rule) (beyond float64) {
	rate := r.Rate
	if r.Window > 0 {
		rate = 0
		if a.At/r.Window != now/r.Window {
			*a = Account{At: now}
			return 0
		}
	}
	beyond = a.excess(r)
	for ends := 0; ends < 2 && epochOf(a.At) < epochOf(now); ends++ {
		a.drain((epochOf(a.At)+1)*slice.Epoch, rate)
		a.Old, a.Young = a.Young, 0
		beyond = max(beyond, a.excess(r))
	}
	a.drain(now, rate)
	return beyond
}

// drain lets time pass in which no lease ends. The conversion keeps the
// compiler from fusing the product into the difference.
func (a *Account) drain(to int64, rate float64) {
	a.Used = max(a.Lent(), a.Used-float64(rate*float64(to-a.At)))
	a.At = to
}

// stamp says what time it is for the account, and how long a lease of now lives.
func (a *Account) stamp(g *slice.Grant, r slice.Rule) {
	g.Now, g.Tag.Epoch = a.At, epochOf(a.At)
	g.Life = (g.Tag.Epoch+2)*slice.Epoch - a.At
	if r.Window > 0 {
		g.Tag.Window = a.At / r.Window
		g.Life = min(g.Life, (g.Tag.Window+1)*r.Window-a.At)
	}
}
