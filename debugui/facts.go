package debugui

import (
	"time"

	"github.com/hybridlimit/hybrid"
)

// storyOf tells what is known of a key.
func storyOf(s *hybrid.KeyState, shadow bool, limiter, key string) *story {
	one := &story{
		Limiter: limiter, Key: key, Limit: limitWords(s.Limit), Shadow: shadow, Known: s.Known, Why: s.Why,
		Here: factsOf(s, shadow), Clock: clock(time.Now()),
	}
	if s.Store != nil {
		one.Account = accountOf(s)
	} else {
		one.Missing = "Not known: " + printable(s.StoreCause)
	}
	return one
}

// factsOf lists what the node knows, in the order in which a request is judged.
func factsOf(s *hybrid.KeyState, shadow bool) []fact {
	denied := "denied"
	if shadow {
		denied = "that would be denied"
	}
	return []fact{
		{"slice", countOf(s.Slice), sliceNote(s)},
		{"deny memo", memoOf(s), memoNote(s, shadow)},
		{"floor", countOf(round(s.Floor, 3)), floorNote(s)},
		{"Redis told", countOf(s.ToldFree), "tokens free; full again in " + wait(s.ToldFull, "a moment")},
		{"next ask", nextOf(s), nextNote(s)},
		{"owed", countOf(round(s.Owed, 3)), "tokens to be charged with the next settle"},
		{"fallback", countOf(round(s.Fallback, 3)), "tokens admitted by the failure policy, not charged yet"},
		{"demand", rateOf(s.Demand), "tokens attempted here lately"},
		{"denials", rateOf(s.DenialRate), "requests " + denied + " here lately"},
	}
}

func sliceNote(s *hybrid.KeyState) string {
	switch {
	case s.Unsettled:
		return "tokens; a settle’s outcome is unknown: used up, and not renewed"
	case s.SliceEnds > 0:
		return "tokens to admit from memory; the lease ends in " + secondsText(s.SliceEnds.Seconds())
	default:
		return "tokens: nothing is lent to this node"
	}
}

// memoOf is the cost from which on requests are denied from memory.
func memoOf(s *hybrid.KeyState) figure {
	if s.DeniedCost <= 0 {
		return figure{unknown.Value, "none"}
	}
	f := countOf(s.DeniedCost)
	f.Text += "+"
	return f
}

func memoNote(s *hybrid.KeyState, shadow bool) string {
	switch {
	case s.DeniedCost <= 0:
		return "nothing is denied from memory"
	case shadow:
		return "tokens at once would be denied from memory, for " + wait(s.DeniedFor, "another moment")
	default:
		return "tokens at once are denied from memory, for " + wait(s.DeniedFor, "another moment")
	}
}

func floorNote(s *hybrid.KeyState) string {
	switch {
	case s.FloorWaits:
		return "tokens: floors open once this node is registered for some seconds"
	case s.FloorOff > 0:
		return "tokens: the account is nearly full, so the floor is off for " + secondsText(s.FloorOff.Seconds())
	default:
		return "tokens to admit without asking anybody"
	}
}

func nextOf(s *hybrid.KeyState) figure {
	if s.NextAsk <= 0 {
		return figure{unknown.Value, "not planned"}
	}
	return durationOf(s.NextAsk)
}

func nextNote(s *hybrid.KeyState) string {
	switch {
	case s.InFlight:
		return "a settle is under way"
	case s.StoreDown:
		return "nobody waits for this key’s part of Redis"
	case s.Paced:
		return "used up: this node asks once a period, for all callers"
	default:
		return "until this node settles of its own accord"
	}
}

func wait(d time.Duration, short string) string {
	if d < time.Millisecond {
		return short
	}
	return secondsText(d.Seconds())
}

func accountOf(s *hybrid.KeyState) *accountStory {
	whole := float64(max(s.Limit.Burst(), 1))
	used := s.Store.Used - float64(s.Store.Lent)
	a := &accountStory{
		Used:    countOf(round(s.Store.Used, 4)),
		Lent:    countOf(s.Store.Lent),
		Free:    countOf(round(s.Store.Free, 4)),
		Reset:   durationOf(s.Store.ResetAfter),
		UsedBar: hundredths(used / whole),
		LentBar: hundredths(float64(s.Store.Lent) / whole),
	}
	a.Words = a.Used.Text + " of " + countWords(s.Limit.Burst()) + " tokens are used, " + a.Lent.Text + " of them lent to servers; " +
		a.Free.Text + " are free; all again in " + wait(s.Store.ResetAfter, "a moment")
	return a
}

func hundredths(part float64) number { return number(round(100*min(max(part, 0), 1), 3)) }
