package sim

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hybridlimit/hybrid"
)

// withLater adds what becomes known later to an experiment.
func withLater(e Experiment) Experiment {
	e.Refunds = Refunds{Part: 0.2, Delay: 2 * time.Second}
	e.Charges = Charges{Part: 0.02, Delay: 2 * time.Second, Most: 1.5}
	return e
}

// Where nothing goes wrong, all that is promised of refunds and charges holds, for
// every kind of limit and accuracy, below the limit and far above it.
func TestRefundsAndCharges(t *testing.T) {
	for i, e := range []Experiment{
		{Limit: hybrid.PerMinute(200), Load: 0.7, Accuracy: hybrid.Strict},
		{Limit: hybrid.PerMinute(200), Load: 1.4, Place: Hopping},
		{Limit: hybrid.PerSecond(50), Load: 5, Accuracy: hybrid.Strict, Cost: 4, Mixed: true},
		{Limit: hybrid.PerSecond(20).WithBurst(100), Load: 1.1, Accuracy: hybrid.Within(0.05, 0.1), Keys: 3},
		{Limit: hybrid.PerSecond(40), Load: 1.2, Accuracy: hybrid.Exact, Arrivals: Arrivals{Batch: 10}},
		{Limit: hybrid.Window(100, 20*time.Second), Load: 1.4, Accuracy: hybrid.Strict},
		{Limit: hybrid.Window(30, 3*time.Second), Load: 3, Place: OneNode},
	} {
		e.Seed, e.Nodes, e.Fills = uint64(i), 5, 6
		if e.Fill() < 10*time.Second {
			e.Fills = 20
		}
		e = withLater(e)
		t.Run(e.Command(), func(t *testing.T) {
			t.Parallel()
			f := e.Run(t)
			if err := f.Err(); err != nil {
				t.Errorf("%v\nagain: %s", err, f.Command())
			}
			if f.Refunds < 10 || f.Charges < 3 {
				t.Errorf("%d refunds, %d charges: that shows nothing", f.Refunds, f.Charges)
			}
			t.Logf("%d refunds, %d charges, known within %v, admitted %.1f %%", f.Refunds, f.Charges, f.Known, 100*f.Ratio())
		})
	}
}

// The store knows of what is told a node within two ticks, of 1 to 1.2 sync intervals
// each, and the calls.
func TestTheStoreKnowsSoon(t *testing.T) {
	for _, sync := range []time.Duration{100 * time.Millisecond, time.Second} {
		e := withLater(Experiment{Limit: hybrid.PerMinute(600), Load: 0.5, Accuracy: hybrid.Exact, Nodes: 5, Fills: 2, Sync: sync, Seed: 3})
		f := e.Run(t)
		if err := f.Err(); err != nil {
			t.Error(err)
		}
		if most := 24*sync/10 + 10*time.Millisecond; f.Known > most || f.Known < sync {
			t.Errorf("sync interval %v: known within %v, want %v at most", sync, f.Known, most)
		}
	}
}

// A node that forgets a charge, and one that counts a refund twice, are found in the
// first minutes, and in no run of the same without the flaw.
func TestFlawsOfNodesAreFound(t *testing.T) {
	for _, l := range []hybrid.Limit{hybrid.PerMinute(200), hybrid.Window(100, 20*time.Second)} {
		for _, acc := range []hybrid.Accuracy{hybrid.Strict, hybrid.Exact, hybrid.Balanced} {
			for _, flaw := range []flaw{sound, forgetsCharges, refundsTwice} {
				e := withLater(Experiment{Limit: l, Load: 1.2, Accuracy: acc, Nodes: 3, Fills: 6, Seed: 11, flaw: flaw})
				t.Run(fmt.Sprint(l, " ", acc, " flaw ", flaw), func(t *testing.T) {
					t.Parallel()
					if f := e.Run(t); (f.Err() == nil) != (flaw == sound) {
						t.Errorf("%v\nagain: %s", f.Err(), f.Command())
					}
				})
			}
		}
	}
}

// register is a central account that hears of everything at once.
type register struct {
	used, burst, rate float64
	at                time.Time
	flaw              string
}

func (a *register) pass() {
	now := time.Now()
	if a.used > 0 { // below 0, more than the limit is free, and stays so
		a.used = max(0, a.used-a.rate*now.Sub(a.at).Seconds())
	}
	a.at = now
}

func (a *register) change(r *request) {
	n := float64(r.cost)
	switch {
	case r.event == charging && a.flaw == "forgets charges":
	case r.event == charging:
		a.used = min(a.used+n, max(a.used, 2*a.burst))
	case a.flaw == "refunds twice":
		a.used = max(0, a.used-2*n)
	case a.flaw == "leaves more than the limit free":
		a.used -= n
	default:
		a.used = max(0, a.used-n)
	}
}

// The judge finds, by the decisions alone, an account that forgets charges, that counts
// refunds twice, or in which a refund leaves more than the limit free.
func TestFlawsOfAccountsAreFound(t *testing.T) {
	for _, flaw := range []string{"", "forgets charges", "refunds twice", "leaves more than the limit free"} {
		found := 0
		for seed := range uint64(20) {
			synctest.Test(t, func(t *testing.T) {
				if f := judgedRegister(seed, flaw); f.Err() != nil {
					found++
					if flaw == "" {
						t.Errorf("seed %d: %v", seed, f.Err())
					}
				}
			})
		}
		if flaw != "" && found < 18 {
			t.Errorf("an account that %s is found in %d of 20 runs", flaw, found)
		}
	}
}

func judgedRegister(seed uint64, flaw string) *Figures {
	e := withLater(Experiment{Limit: hybrid.PerSecond(10).WithBurst(20), Accuracy: hybrid.Exact, Load: 1, Seed: seed}).withDefaults()
	j, line := newJudge(e, e.population()), e.stretches()
	a := &register{burst: 20, rate: 10, at: time.Now(), flaw: flaw}
	rng := rand.New(rand.NewPCG(seed, 2))
	given := int64(0)
	for number := range int64(2000) {
		gap := rng.ExpFloat64() * 0.12
		if number%200 == 0 {
			gap = 3 // what was used is free again
		}
		time.Sleep(time.Duration(gap * float64(time.Second)))
		a.pass()
		now := time.Now().UnixNano()
		r := request{number: number, asked: now, at: now, cost: 1 + rng.Int64N(4), stretch: &line[1]}
		switch n := rng.IntN(20); {
		case n == 0:
			r.event = charging
		case n < 4 && given >= r.cost:
			r.event, given = refunding, given-r.cost
		}
		if r.event != decision {
			a.change(&r)
			j.happened(r)
			r.event++ // it has taken effect at once
			j.happened(r)
			continue
		}
		if r.allowed = a.used+float64(r.cost) <= a.burst; r.allowed {
			a.used += float64(r.cost)
			given += r.cost
		}
		j.offered(&r)
		j.happened(r)
	}
	f := &Figures{Experiment: e}
	j.finish(f)
	return f
}

// Changes are drawn as their flags say.
func TestChanges(t *testing.T) {
	e := withLater(Experiment{Limit: hybrid.PerMinute(100), Cost: 10}).withDefaults()
	refunds, charges, tokens, whole, most := 0, 0, 0.0, 0, int64(0)
	const n = 20_000
	for number := range int64(n) {
		back := int64(0)
		for _, c := range e.changesOf(&request{number: number, cost: 10, allowed: true}) {
			switch {
			case c.wait < 0 || c.wait > 20*time.Second || c.tokens < 1:
				t.Fatalf("%+v", c)
			case c.charge:
			case c.refund:
				back += c.tokens
			default:
				charges++
				most = max(most, c.tokens)
			}
		}
		if back > 10 {
			t.Fatalf("%d of 10 tokens are given back", back)
		}
		if back > 0 {
			refunds++
			tokens += float64(back)
		}
		if back == 10 {
			whole++
		}
	}
	if math.Abs(float64(refunds)/n-0.2) > 0.01 || math.Abs(float64(charges)/n-0.02) > 0.005 {
		t.Errorf("%d refunds and %d charges for %d requests", refunds, charges, n)
	}
	if whole < refunds/3 || whole > refunds*2/3 || most < 120 || most > 150 {
		t.Errorf("%d of %d refunds are whole; the largest charge is %d", whole, refunds, most)
	}
	if all := e.changesOf(&request{number: 1, cost: 10}); len(all) > 2 {
		t.Errorf("%+v for a denied request", all)
	}
	if e.Refunds, e.Charges = (Refunds{}), (Charges{}); e.changesOf(&request{number: 1, cost: 1, allowed: true}) != nil {
		t.Error("changes without flags")
	}
}
