package sim

import (
	"errors"
	"math"
	"time"

	"github.com/hybridlimit/hybrid/internal/oracle"
)

// Figures is what a run showed. Unless it says otherwise a number is of the
// measured part, and in requests. Where a sample of keys stands for all, numbers
// are what all would have come to, except commands, round trips, bytes and keys
// remembered: a call of many keys carries more of them than a call of few.
type Figures struct {
	Experiment Experiment // complete

	// Over: what was admitted beyond the limit, in the whole run.
	Excess  float64 // worst of any interval and key beyond the ideal bucket, tokens; ≤ 0: the room that was left
	Worst   oracle.Report
	Problem []error // what must never happen and did: a broken promise, more operations than requests, nonsense answers

	// Under: what could have been admitted, and was not.
	Offered      int64 // tokens; these three without scenes that are set aside
	Admitted     int64 // tokens
	Ideal        int64 // tokens that a perfect central limiter admits
	Denied       int64
	FalseDenials int64 // denials though an ideal account that is charged with our admissions had room
	Windows      []Window
	Free, Lent   float64 // tokens of the first key at the end; NaN if the subject does not say

	// What it cost.
	Requests int64
	Blocked  int64   // waited for the store
	Delay    int64   // of all requests together until they had their answers, ns
	Policy   int64   // decided by the failure policy
	Cost     Cost    // of the store
	Nodes    []int64 // tokens admitted by each node

	Remembered float64 // keys that a node remembers at the end, on average; of the library only

	// What became known later, in the whole run.
	Refunds, Refunded int64         // calls, and tokens
	Charges, Charged  int64         // calls, and tokens
	Known             time.Duration // until the store knew, at the longest; of a slice that took it, until it was next told of

	Asked   int64         // requests in the whole run; of a sample of keys, those that were made
	Elapsed time.Duration // real time of the run
}

// Window is a part of the measured time, one fill time long where that fits.
type Window struct {
	From            time.Duration // since the start of the run
	Offered         int64         // tokens
	Admitted, Ideal int64         // tokens
	Aside           bool
}

// Err is nil unless something happened that must never happen.
func (f *Figures) Err() error { return errors.Join(f.Problem...) }

// Command is the command line that runs the experiment again.
func (f *Figures) Command() string { return f.Experiment.Command() }

// Over is the worst excess of any interval as a part of the burst.
func (f *Figures) Over() float64 {
	return max(0, f.Excess) / float64(f.Experiment.Limit.Burst())
}

// Ratio is what was admitted of what a perfect central limiter admits.
func (f *Figures) Ratio() float64 { return share(f.Admitted, f.Ideal, 1) }

// Operations is accounts settled per request.
func (f *Figures) Operations() float64 { return share(f.Cost.Operations, f.Requests, 0) }

// Waited is the part of the requests that waited for the store.
func (f *Figures) Waited() float64 { return share(f.Blocked, f.Requests, 0) }

// FalselyDenied is the part of the requests that was denied falsely.
func (f *Figures) FalselyDenied() float64 { return share(f.FalseDenials, f.Requests, 0) }

// WorstWindow is the window with the least ratio of admitted to ideal. Tokens
// that an ideal limiter admits at the end of one window and the fleet at the
// beginning of the next count against the first.
func (f *Figures) WorstWindow() (w Window, ratio float64) {
	ratio = math.Inf(1)
	for _, v := range f.Windows {
		if r := share(v.Admitted, v.Ideal, 1); !v.Aside && r < ratio {
			w, ratio = v, r
		}
	}
	return w, ratio
}

// Fairness is Jain's index of the nodes' admissions: 1 if all admit the same,
// 1/n if one of n admits everything.
func (f *Figures) Fairness() float64 {
	var sum, squares float64
	for _, n := range f.Nodes {
		sum += float64(n)
		squares += float64(n) * float64(n)
	}
	if squares == 0 {
		return 1
	}
	return sum * sum / (float64(len(f.Nodes)) * squares)
}

// Competitive is the operations per fill time and key, against (k−1)·ln(1+L/k):
// what any deterministic scheme needs for spending a one-shot budget of L tokens
// exactly on k nodes when requests come where they hurt most. It is no lower
// bound for other traffic, nor for a bucket that refills.
func (f *Figures) Competitive() float64 {
	e := &f.Experiment
	k, l := float64(e.Nodes), float64(e.Limit.Burst())/e.meanCost()
	fills := max(1, float64(e.Span)/float64(e.Fill())) * float64(e.Keys)
	return float64(f.Cost.Operations) / fills / ((k - 1) * math.Log1p(l/k))
}

func share(part, whole int64, none float64) float64 {
	if whole == 0 {
		return none
	}
	return float64(part) / float64(whole)
}
