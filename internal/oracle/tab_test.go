package oracle

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"
	"time"
)

// fleet is a small one that shares an account by slices, honestly but for its flaw:
// what the tab may not complain about, and what it must find.
type fleet struct {
	limit Limit
	flaw  string
	rng   *rand.Rand
	tab   *Tab
	net   *Checker // admissions less refunds

	at    int64
	used  float64
	nodes [3]holder
}

// holder is a node: its slice, and what it has to tell.
type holder struct {
	held, spent float64 // lent to it: in the slice, and used since it last told
	given       int64   // it has admitted, and not given back
	owed        []owed
}

// owed is a charge or a refund that the store does not know of.
type owed struct {
	tokens int64
	refund bool
	made   int64
}

func (f *fleet) lent() (sum float64) {
	for _, n := range f.nodes {
		sum += n.held + n.spent
	}
	return sum
}

// pass lets time pass.
func (f *fleet) pass(d int64) {
	f.at += d
	if w := f.limit.window; w > 0 {
		if windowOf(f.at, w) != windowOf(f.at-d, w) {
			f.used = 0
			for i := range f.nodes {
				n := &f.nodes[i]
				n.held, n.spent, n.given = 0, 0, 0
				n.owed = nil
			}
			f.tab.refunds = 0 // they were of that window, and are dropped with it
			f.net.pending = 0
		}
		return
	}
	if f.used > f.lent() { // less is what only a flaw leaves, and it stays so
		f.used = max(f.lent(), f.used-f.limit.rate*float64(d))
	}
}

// admit admits a cost from the slice or from the account.
func (f *fleet) admit(n *holder, cost int64) {
	c := float64(cost)
	switch {
	case n.held >= c:
		n.held, n.spent = n.held-c, n.spent+c
	case f.used+c <= f.limit.burst:
		f.used += c
	default:
		return
	}
	n.given += cost
	f.tab.Admit(Admission{f.at, cost})
	f.net.Add(Admission{f.at, cost})
}

func (f *fleet) charge(n *holder, tokens int64) {
	f.tab.Charging(Admission{f.at, tokens})
	switch c := float64(tokens); {
	case f.flaw == "forgets a charge":
		f.tab.Charged(Admission{f.at, tokens}, f.at)
	case n.held >= c:
		n.held, n.spent = n.held-c, n.spent+c
		f.tab.Charged(Admission{f.at, tokens}, f.at)
	default:
		n.owed = append(n.owed, owed{tokens, false, f.at})
	}
}

func (f *fleet) refund(n *holder, tokens int64) {
	if tokens = min(tokens, n.given); tokens == 0 {
		return
	}
	n.given -= tokens
	f.tab.Refunding(Admission{f.at, tokens})
	f.net.Refunding(tokens)
	if c := float64(tokens); n.spent >= c {
		n.held, n.spent = n.held+c, n.spent-c
		f.refunded(tokens)
		return
	}
	n.owed = append(n.owed, owed{tokens, true, f.at})
}

func (f *fleet) refunded(tokens int64) {
	f.tab.Refunded(Admission{f.at, tokens})
	f.net.Refunded(Admission{f.at, tokens})
}

// settle tells the store all, and asks for a share of what is free.
func (f *fleet) settle(n *holder, want bool) {
	n.spent = 0
	if f.rng.IntN(2) == 0 {
		f.used, n.held = f.used-n.held, 0
	}
	net := 0.0
	for _, o := range n.owed {
		if o.refund {
			net -= float64(o.tokens)
			if f.flaw == "refunds twice" {
				net -= float64(o.tokens)
			}
		} else {
			net += float64(o.tokens)
		}
	}
	least := f.lent()
	if f.flaw == "leaves more than the limit free" {
		least = math.Inf(-1)
	}
	before := f.used
	f.used = max(least, f.used+net)
	if net > 0 {
		f.used = min(f.used, max(before, 2*f.limit.burst))
	}
	for _, o := range n.owed {
		if o.refund {
			f.refunded(o.tokens)
		} else {
			f.tab.Charged(Admission{f.at, o.tokens}, o.made)
		}
	}
	n.owed = nil
	if free := f.limit.burst - f.used; want && free >= 2 {
		g := math.Floor(free / 2)
		f.used, n.held = f.used+g, n.held+g
	}
}

// story is a random one. It returns what is wrong with it.
func story(seed uint64, l Limit, flaw string) (err error) {
	f := &fleet{limit: l, flaw: flaw, rng: rand.New(rand.NewPCG(seed, 7)), tab: NewTab(l), net: NewChecker(l)}
	f.at = f.rng.Int64N(1e15)
	for range 1500 {
		f.pass(int64(f.rng.ExpFloat64() * 3e7))
		if f.rng.IntN(50) == 0 && l.window == 0 { // now and then most of it drains
			f.pass(int64(f.rng.Float64() * 2 * l.burst / l.rate))
		}
		n := &f.nodes[f.rng.IntN(len(f.nodes))]
		most := max(int64(l.burst)/4, 1)
		switch f.rng.IntN(12) {
		case 0:
			f.charge(n, 1+f.rng.Int64N(most))
		case 1:
			if f.rng.IntN(10) == 0 {
				f.charge(n, 1+f.rng.Int64N(3*int64(l.burst)))
			}
		case 2, 3:
			f.refund(n, 1+f.rng.Int64N(most))
		case 4, 5:
			f.settle(n, f.rng.IntN(2) == 0)
		case 6:
			f.tab.Audit(f.at, f.used)
		default:
			f.admit(n, 1+f.rng.Int64N(most))
		}
	}
	f.tab.Audit(f.at, f.used)
	if err := f.net.Report().Err(); err != nil {
		return err
	}
	return f.tab.Err()
}

var tabbed = map[string]Limit{
	"bucket": New(20, time.Second, 30),
	"slow":   New(1, time.Second, 50),
	"window": NewWindow(40, 3*time.Second),
}

// Whatever honest nodes do, and whenever the store hears of it, the tab finds
// nothing wrong.
func TestAnHonestFleetIsNotSuspected(t *testing.T) {
	for name, l := range tabbed {
		for seed := range uint64(150) {
			if err := story(seed, l, ""); err != nil {
				t.Fatalf("%s, seed %d: %v", name, seed, err)
			}
		}
	}
}

// Each dishonesty is found, in nearly every story.
func TestADishonestFleetIsFound(t *testing.T) {
	for name, l := range tabbed {
		for _, flaw := range []string{"forgets a charge", "refunds twice", "leaves more than the limit free"} {
			if flaw == "leaves more than the limit free" && name != "bucket" {
				continue // elsewhere hardly anything drains, and no refund is more than what is used
			}
			found := 0
			for seed := range uint64(20) {
				if story(seed, l, flaw) != nil {
					found++
				}
			}
			if found < 10 {
				t.Errorf("%s: a fleet that %s is found in %d of 20 stories", name, flaw, found)
			}
		}
	}
}

// Time in debt earns nothing: after a charge of a whole burst beyond a full account, the
// next token is there when the debt has drained.
func TestAdmissionsWaitForADebt(t *testing.T) {
	l := New(10, time.Second, 10)
	ms := int64(time.Millisecond)
	for _, c := range []struct {
		after  int64 // ms
		broken bool
	}{{0, true}, {500, true}, {1050, true}, {1100, false}, {2000, false}} {
		tab := NewTab(l)
		tab.Admit(Admission{0, 10})
		tab.Charging(Admission{0, 10})
		tab.Charged(Admission{0, 10}, 0)
		tab.Admit(Admission{c.after * ms, 1})
		if broken := tab.Err() != nil; broken != c.broken {
			t.Errorf("a token after %d ms: %v", c.after, tab.Err())
		}
	}
}

// Until it is known that a charge has taken effect, it forbids nothing; a refund that
// may have taken effect permits.
func TestWhatIsPendingIsTheFleets(t *testing.T) {
	l := New(10, time.Second, 10)
	s := int64(time.Second)
	tab := NewTab(l)
	tab.Admit(Admission{0, 10})
	tab.Charging(Admission{0, 10})
	tab.Admit(Admission{s / 10, 1})
	if tab.Err() != nil {
		t.Error("nobody may have heard of the charge", tab.Err())
	}
	tab.Refunding(Admission{s / 10, 5})
	tab.Admit(Admission{s / 10, 5})
	if tab.Err() != nil {
		t.Error("what was refunded is free", tab.Err())
	}
	tab.Refunded(Admission{s / 10, 5})
	tab.Admit(Admission{s / 10, 1})
	if tab.Err() == nil {
		t.Error("what was refunded is free once")
	}
}

// A charge that may have been given up need not be known. What others are known to
// have used is what is left without it.
func TestAForgottenChargeIsMissedByNobody(t *testing.T) {
	s := int64(time.Second)
	for _, known := range []float64{5, 4} {
		tab := NewTab(New(10, time.Second, 10))
		tab.Charging(Admission{0, 30})
		tab.Charging(Admission{2 * s, 25})
		tab.Forgotten(Admission{2 * s, 30}, 0)
		tab.Charged(Admission{2 * s, 25}, 2*s)
		tab.Audit(2*s, known)
		if broken := tab.Err() != nil; broken != (known < 5) {
			t.Errorf("%v known: %v", known, tab.Err())
		}
	}
	tab := NewTab(NewWindow(10, time.Second)) // one of a window that is over changes nothing
	tab.Charging(Admission{0, 5})
	tab.Forgotten(Admission{s, 5}, 0)
	tab.Audit(s, 0)
	if tab.Err() != nil {
		t.Error(tab.Err())
	}
}

// A negative admission is one: intervals with both hold neither.
func TestARefundIsANegativeAdmission(t *testing.T) {
	s := int64(time.Second)
	for _, l := range []Limit{New(10, time.Second, 10), NewWindow(10, time.Minute)} {
		c := NewChecker(l)
		c.Add(Admission{0, 10})
		c.Refunding(4)
		c.Add(Admission{1, 4})
		c.Refunded(Admission{2, 4})
		if r := c.Report(); !r.Held() || r.Total != 10 {
			t.Errorf("10 stand: %+v", r)
		}
		c.Add(Admission{3, 1})
		if r := c.Report(); r.Held() || r.Admitted != 11 {
			t.Errorf("11 stand: %+v", r)
		}
	}
	c := NewChecker(New(10, time.Second, 10))
	c.Add(Admission{0, 5})
	c.Refunding(5)
	c.Refunded(Admission{5 * s, 5}) // long refilled
	c.Add(Admission{5 * s, 11})
	if c.Report().Held() {
		t.Error("a refund of what was refilled left more than the limit free")
	}
}

// An ideal account may owe a burst, and is never more than full.
func TestIdealDebt(t *testing.T) {
	i := NewIdeal(New(10, time.Second, 10))
	s := int64(time.Second)
	i.Owe(0, 1000)
	i.Charge(0, 3)
	if i.Allow(s, 1) || !i.Allow(s+s/10, 1) {
		t.Error("a burst of debt drains in a second")
	}
	i.Return(s+s/10, 1000)
	if i.Allow(s+s/10, 11) || !i.Allow(s+s/10, 10) {
		t.Error("a full account holds a burst")
	}
}

func ExampleTab() {
	tab := NewTab(New(10, time.Second, 10))
	tab.Admit(Admission{0, 4})
	tab.Charging(Admission{0, 3})
	tab.Charged(Admission{0, 3}, 0)
	tab.Audit(0, 4)
	fmt.Println(tab.Err())
	// Output: oracle: the account knows of 4.000 used at 0 ns, 3.000 less than there were
}
