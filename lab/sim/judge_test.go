package sim

import (
	"math/rand/v2"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hybridlimit/hybrid"
	"github.com/hybridlimit/hybrid/internal/oracle"
)

// The judge sees decisions late and out of order, and one by one; the oracle sees
// them all at the end. They say the same.
func TestJudgeAgainstTheOracle(t *testing.T) {
	for seed := range uint64(20) {
		synctest.Test(t, func(t *testing.T) {
			e := Experiment{Limit: hybrid.PerSecond(50).WithBurst(20), Load: 1, Seed: seed, Warm: 1}.withDefaults()
			rng := rand.New(rand.NewPCG(seed, 1))
			j := newJudge(e, e.population())
			line := e.stretches()
			var all []oracle.Request
			for number := range int64(2000) {
				time.Sleep(time.Duration(rng.IntN(30)) * time.Millisecond)
				now := time.Now().UnixNano()
				r := request{number: number, asked: now, at: now, cost: 1 + rng.Int64N(3), stretch: &line[1], allowed: rng.IntN(2) == 0}
				if rng.IntN(3) == 0 { // the store decided a while ago
					r.at -= rng.Int64N(int64(time.Second))
				}
				j.offered(&r)
				j.happened(r)
				all = append(all, oracle.Request{At: r.at, Cost: r.cost, Allowed: r.allowed})
			}
			f := &Figures{Experiment: e}
			j.finish(f)
			compareWithOracle(t, f, all)
		})
	}
}

func compareWithOracle(t *testing.T, f *Figures, all []oracle.Request) {
	limit := oracleOf(f.Experiment.Limit)
	want, report := limit.Compare(all), limit.Check(oracle.Admissions(all))
	if f.Admitted != want.Admitted || f.Offered != want.Offered || f.FalseDenials != want.FalseDenials {
		t.Errorf("admitted %d of %d, %d falsely denied; want %+v", f.Admitted, f.Offered, f.FalseDenials, want)
	}
	if diff := f.Excess - report.Excess; diff > 1e-6 || diff < -1e-6 {
		t.Errorf("excess %v, want %v", f.Excess, report.Excess)
	}
	if (f.Err() == nil) != report.Held() && f.Experiment.Accuracy.Over() == 0 {
		t.Errorf("%v, want %v", f.Err(), report.Err())
	}
}

// A broken promise does not pass.
func TestJudgeSeesABrokenPromise(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := Experiment{Limit: hybrid.PerHour(10), Accuracy: hybrid.Strict, Load: 1}.withDefaults()
		for _, admitted := range []int64{10, 11} {
			f := judged(e, admitted, request{allowed: true})
			if broken := f.Err() != nil; broken != (admitted > 10) {
				t.Errorf("%d of 10 at once: %v", admitted, f.Err())
			}
		}
	})
}

// The failure policy decides nothing where nothing can fail, FailClosed admits
// nothing, and FailLocal one limit more than the promise, with or without faults.
func TestJudgeOfTheFailurePolicy(t *testing.T) {
	far, cut := Trip{Mean: 30 * time.Millisecond}, Faults{{Kind: Cut}}
	for _, c := range []struct {
		Experiment
		admits int64 // all by the policy; 0: it denies a request
		broken string
	}{
		{Experiment{OnFailure: hybrid.FailLocal}, 1, "nothing had failed"},
		{Experiment{OnFailure: hybrid.FailLocal}, 0, "nothing had failed"},
		{Experiment{OnFailure: hybrid.FailLocal, Trip: far}, 20, ""},
		{Experiment{OnFailure: hybrid.FailLocal, Trip: far}, 21, "FailLocal"},
		{Experiment{OnFailure: hybrid.FailLocal, Faults: cut}, 21, "FailLocal"},
		{Experiment{OnFailure: hybrid.FailOpen, Faults: cut}, 30, ""},
		{Experiment{OnFailure: hybrid.FailClosed, Faults: cut}, 0, ""},
		{Experiment{OnFailure: hybrid.FailClosed, Faults: cut}, 1, "FailClosed admitted 1"},
	} {
		synctest.Test(t, func(t *testing.T) {
			e := c.Experiment
			e.Limit, e.Accuracy, e.Load = hybrid.PerHour(10), hybrid.Strict, 1
			f := judged(e.withDefaults(), max(c.admits, 1), request{allowed: c.admits > 0, policy: true})
			if err := f.Err(); (err == nil) != (c.broken == "") || err != nil && !strings.Contains(err.Error(), c.broken) {
				t.Errorf("%v, %d admitted: %v, want %q", e.OnFailure, c.admits, err, c.broken)
			}
		})
	}
}

// judged is the judgement of some requests at one moment.
func judged(e Experiment, n int64, r request) *Figures {
	j, line := newJudge(e, e.population()), e.stretches()
	r.asked, r.at, r.cost, r.stretch = time.Now().UnixNano(), time.Now().UnixNano(), 1, &line[1]
	for number := range n {
		r := r
		r.number = number
		j.offered(&r)
		j.happened(r)
	}
	f := &Figures{Experiment: e}
	j.finish(f)
	return f
}

// The bound of a limiter with a floor is a tenth more, and of a store that lost its
// data twice two bursts more.
func TestPromise(t *testing.T) {
	l := hybrid.PerSecond(10).WithBurst(100)
	for _, c := range []struct {
		over   float64
		losses int
		at     time.Duration
		want   float64
	}{
		{0, 0, 0, 100},
		{0.1, 0, 10 * time.Second, 220},
		{0.1, 2, 0, 310},
		{0, 1, 10 * time.Second, 300},
		{1, 0, 10 * time.Second, 400},
	} {
		if got := promise(l, c.over, c.losses).Bound(c.at); got < c.want-1e-9 || got > c.want+1.1 {
			t.Errorf("%+v: %v", c, got)
		}
	}
}
