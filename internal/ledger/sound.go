package ledger

import "github.com/hybridlimit/hybrid/slice"

// Sound reports whether the store would execute such a settle. What nobody
// looks at may be anything: the numbers of a slice when none is reported, and
// the terms of a grant when none is wanted.
func Sound(r slice.Rule, u slice.Usage) bool {
	const most = slice.MaxTokens
	return within(r.Burst, 1, most) && within(r.Rate, 1e-300, most) && within(r.Window, 0, most) &&
		within(u.Tag.Epoch, 0, most) && within(u.Tag.Window, 0, most) &&
		within(u.Charged, -most, most) && within(u.Fallback, 0, most) &&
		within(u.Return, 0, most) && (u.Return == 0 || within(u.ReturnAt, 0, most)) && within(u.Want, 0, most) &&
		(u.Tag.Epoch == 0 || soundSlice(&u)) && (u.Want == 0 || soundTerms(&u)) && soundNeeds(u.Needs)
}

// within is false for a float that is no number.
func within[T int64 | float64](v, lo, hi T) bool { return v >= lo && v <= hi }

func soundSlice(u *slice.Usage) bool {
	return within(u.Spent, 0, slice.MaxTokens) && within(u.Returned, 0, slice.MaxTokens) &&
		within(u.Held, 0, slice.MaxSlice)
}

func soundTerms(u *slice.Usage) bool {
	return within(u.Least, 1, slice.MaxTokens) && within(u.Unit, 1, slice.MaxTokens) &&
		within(u.Divisor, 1, slice.MaxTokens)
}

func soundNeeds(needs []slice.Need) bool {
	for _, n := range needs {
		if !within(n.Cost, 1, slice.MaxTokens) || !within(n.Count, 0, slice.MaxTokens) {
			return false
		}
	}
	return len(needs) <= slice.MaxRuns
}
