package ledger

import (
	"math"

	"github.com/hybridlimit/hybrid/slice"
)

// The steps of a settle, on an account that has been brought to the present.

// stale says whether the account has forgotten a lease by now.
func stale(lease, now slice.Tag, r slice.Rule) bool {
	return lease.Epoch < now.Epoch-1 || r.Window > 0 && lease.Window != now.Window
}

// lease returns what the account knows of the tokens lent in an epoch; nil for
// one that is still to come, which happens after the store lost its data.
func (a *Account) lease(epoch int64) *float64 {
	switch epochOf(a.At) - epoch {
	case 0:
		return &a.Young
	case 1:
		return &a.Old
	}
	return nil
}

// report books a slice: its lease ends, and what the node still holds is a
// lease of now. What the lease does not cover (lost with the data, lent twice)
// is charged. Held tokens of which more are lent than before need room, like any
// grant: without it they count as spent, and the slice ends. It returns whether
// there was anything to book, and whether the slice goes on.
func (a *Account) report(r slice.Rule, u *slice.Usage) (booked, goesOn bool) {
	returned, held := float64(u.Returned), float64(u.Held)
	x, covered := float64(u.Spent)+returned+held, 0.0
	if x == 0 {
		return false, true
	}
	if lent := a.lease(u.Tag.Epoch); lent != nil {
		covered = min(x, *lent)
		*lent -= covered
	}
	used := a.Used + (x - covered) - returned
	if goesOn = held <= covered || used <= float64(r.Burst); goesOn {
		a.Young += held
	}
	a.Used = max(a.Lent(), used)
	return true, goesOn
}

// charge books what was admitted without asking, unless that was in another
// window. A charge makes debt up to 2·B, what was admitted while the store was
// away none. It returns whether there was anything to charge.
func (a *Account) charge(r slice.Rule, u *slice.Usage, now slice.Tag) bool {
	charged := u.Charged - a.undone(r, u, now)
	if charged == 0 && u.Fallback == 0 {
		return false
	}
	if r.Window > 0 && u.Tag.Window != 0 && u.Tag.Window != now.Window {
		return false
	}
	b, before := float64(r.Burst), a.Used
	a.Used = max(a.Lent(), a.Used+charged)
	if charged > 0 {
		a.Used = min(a.Used, max(before, 2*b))
	}
	if a.Used < b {
		a.Used = min(b, a.Used+u.Fallback)
	}
	return true
}

// undone is what a settle gives back of admissions that another limit denied: what has
// drained since the first of them would be there twice. The account drains by r at
// most in all, so one subtraction is enough for all of them. What another window admitted
// went with it.
func (a *Account) undone(r slice.Rule, u *slice.Usage, now slice.Tag) float64 {
	switch {
	case r.Window > 0 && u.Tag.Window != now.Window:
		return 0
	case r.Window > 0 || a.At <= u.ReturnAt:
		return u.Return
	}
	return max(u.Return-float64(r.Rate*float64(a.At-u.ReturnAt)), 0)
}

// admit admits the runs in order: of each as many as fit. What is refused is
// not charged, and a smaller cost behind it may fit.
//
// One that may wait and does not fit is lent up to 2·B, if it has room beside all slices,
// which may be used up at the moment of its turn. Were it not lent, it would drain before
// it is spent. While a higher limit used more it is refused: by what is used then, nobody
// could tell whether it was lent.
func (a *Account) admit(r slice.Rule, needs []slice.Need, beyond float64, g *slice.Grant) (admitted, refused bool) {
	if len(needs) == 0 {
		return false, false
	}
	g.Admitted = make([]int64, len(needs))
	for i, n := range needs {
		limit, waits := float64(r.Burst), false
		if n.Count == 0 { // it may wait
			n.Count = 1
			waits = r.Window == 0 && a.Lent()+float64(n.Cost) <= float64(r.Burst)
			switch {
			case beyond > 0:
				limit = 0
			case waits:
				limit *= 2
			}
		}
		k := a.fit(limit, n)
		a.Used += float64(float64(k) * float64(n.Cost))
		if waits && k > 0 && a.Used > float64(r.Burst) {
			a.Young += float64(n.Cost)
		}
		g.Admitted[i] = k
		admitted = admitted || k > 0
		refused = refused || k < n.Count
	}
	return admitted, refused
}

// fit finds by bisection how many of a run fit. Most runs fit whole or not at all.
func (a *Account) fit(limit float64, n slice.Need) int64 {
	free := limit - a.Used
	fits := func(k int64) bool {
		c := float64(k * n.Cost)
		return c <= free && a.Used+c <= limit
	}
	if !fits(1) {
		return 0
	}
	if n.Count == 1 {
		return 1
	}
	lo, hi := int64(1), min(n.Count, slice.MaxTokens/n.Cost)
	if fits(hi) {
		return hi
	}
	for lo < hi-1 { // lo fits, hi does not
		if mid := lo + (hi-lo)/2; fits(mid) {
			lo = mid
		} else {
			hi = mid
		}
	}
	return lo
}

// grant lends a share of what is free, in whole units, unless that is too
// little to be of use. It returns how much.
func (a *Account) grant(r slice.Rule, u *slice.Usage) int64 {
	share := math.Floor((float64(r.Burst) - a.Used) / float64(u.Divisor))
	g := min(u.Want, slice.MaxSlice, int64(max(share, 0)))
	if g -= g % u.Unit; g < u.Least {
		return 0
	}
	a.Used += float64(g)
	a.Young += float64(g)
	return g
}
