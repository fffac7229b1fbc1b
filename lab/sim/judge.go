package sim

import (
	"fmt"
	"sync"
	"time"

	"github.com/hybridlimit/hybrid"
	"github.com/hybridlimit/hybrid/internal/oracle"
)

// request is one arrival with what became of it.
type request struct {
	asked   int64 // ns since the Unix epoch
	delay   int64 // until there was an answer, ns
	at      int64 // when the decision counts, ns
	number  int64 // in the order of arrival
	cost    int64
	stretch *stretch
	used    float64 // audits only
	key     int32
	node    int32
	event   event
	ideal   bool // a perfect central limiter admits it
	allowed bool
	blocked bool
	policy  bool
	floor   bool
}

// event is what a request in the judge's line is.
type event uint8

const (
	decision  event = iota
	refunding       // cost tokens are given back now or later
	refunded        // they are
	charging        // cost tokens, known at the moment asked, count now or later
	charged         // they do
	forgotten       // they may never count: the node may have given them up
	audited         // the store says how much is used
)

// before says which of two decisions counts first.
func (r *request) before(o *request) bool {
	return r.at < o.at || r.at == o.at && r.number < o.number
}

// judge holds every decision against the limit as the decisions come, in
// constant memory per key. Decisions become known late (one of the store when
// its reply has arrived) and are judged in the order in which they count, so they
// are kept back for a while.
type judge struct {
	lag time.Duration // no decision becomes known later than this
	law law

	mu    sync.Mutex
	keys  []*account // by number; nil: never asked for
	late  reorder
	sums  sums
	local []*oracle.Checker // by key: FailLocal, with what the policy admits; nil: nothing is bounded so

	answered, admits int64 // by the failure policy: in all, and admissions

	tabOf func() *oracle.Tab // nil: there is none
}

// law is what keys are judged by: what they are when nobody has asked.
type law struct {
	account
	all *oracle.Checker
}

// account is the judgement of one key.
type account struct {
	promise oracle.Checker // what must hold
	limit   oracle.Checker // the limit itself
	central oracle.Ideal   // the perfect central limiter, at arrival
	ours    oracle.Ideal   // an ideal account that is charged with our admissions
	tab     *oracle.Tab    // the account with what becomes known later; nil: nothing does
}

// reorderLag is longer than any caller waits for the store.
const reorderLag = 1200 * time.Millisecond

func newJudge(e Experiment, keys *population) *judge {
	limit, over, losses := oracleOf(e.Limit), e.Accuracy.Over(), e.Faults.losses()
	j := &judge{lag: max(reorderLag, 2*e.Timeout), keys: make([]*account, keys.count), sums: newSums(e, keys)}
	j.law = law{account: account{
		promise: *oracle.NewChecker(promise(e.Limit, over, losses)),
		limit:   *oracle.NewChecker(limit),
		central: *oracle.NewIdeal(limit),
		ours:    *oracle.NewIdeal(limit),
	}}
	if e.OnFailure == hybrid.FailLocal && e.mayFail() {
		j.law.all = oracle.NewChecker(promise(e.Limit, over+1, losses))
		j.local = make([]*oracle.Checker, keys.count)
	}
	if e.changesLater() && losses == 0 { // an account that was lost knows nothing
		j.tabOf = e.tab
	}
	return j
}

// offered judges a request as a perfect central limiter would. Requests come in
// order of time.
func (j *judge) offered(r *request) {
	j.mu.Lock()
	defer j.mu.Unlock()
	r.ideal = j.account(r.key).central.Allow(r.asked, r.cost)
}

// account is the judgement of a key. The caller holds mu.
func (j *judge) account(key int32) *account {
	a := j.keys[key]
	if a == nil {
		a = new(account)
		*a = j.law.account
		if j.tabOf != nil {
			a.tab = j.tabOf()
		}
		j.keys[key] = a
	}
	return a
}

// happened takes what has become known now, of an earlier moment.
func (j *judge) happened(r request) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.offerChange(&r)
	j.late.add(r)
	j.judgeUntil(time.Now().Add(-j.lag).UnixNano())
}

// judgeUntil judges what counts before a moment. The caller holds mu.
func (j *judge) judgeUntil(at int64) {
	for {
		r := j.late.first()
		if r == nil || r.at >= at {
			return
		}
		if r.event == decision {
			j.decide(r)
		} else {
			j.change(r)
		}
		j.late.drop()
	}
}

// decide judges the decision that counts next.
func (j *judge) decide(r *request) {
	a := j.account(r.key)
	falsely := false
	if r.allowed {
		a.ours.Charge(r.at, r.cost)
		j.admitted(a, r)
	} else {
		falsely = a.ours.Fits(r.at, r.cost)
	}
	if r.policy {
		j.answered++
		j.admits += one(r.allowed)
	}
	j.sums.add(r, falsely)
}

// admitted replays an admission. What the failure policy admits is bounded by a
// promise of its own.
func (j *judge) admitted(a *account, r *request) {
	admission := oracle.Admission{At: r.at, Cost: r.cost}
	a.limit.Add(admission)
	if !r.policy {
		a.promise.Add(admission)
	}
	if a.tab != nil && !r.policy && !r.floor {
		a.tab.Admit(admission)
	}
	if local := j.localOf(r.key); local != nil {
		local.Add(admission)
	}
}

// localOf is the judgement of a key with what the policy admits; nil: there is none.
func (j *judge) localOf(key int32) *oracle.Checker {
	if j.local == nil {
		return nil
	}
	if j.local[key] == nil {
		c := *j.law.all
		j.local[key] = &c
	}
	return j.local[key]
}

// finish judges all that is left, and sums up.
func (j *judge) finish(f *Figures) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.judgeUntil(1<<63 - 1)
	j.sums.total(f)
	f.Excess = -float64(f.Experiment.Limit.Burst())
	for number, a := range j.keys {
		if a == nil {
			continue
		}
		if r := a.limit.Report(); r.Excess > f.Excess {
			f.Excess, f.Worst = r.Excess, r
		}
		f.hold(number, &a.promise, "the promise")
		if j.local != nil && j.local[number] != nil {
			f.hold(number, j.local[number], "the promise of FailLocal")
		}
		f.holdTab(number, a.tab)
	}
	j.holdPolicy(f)
}

// holdPolicy holds the failure policy to what it may do at all: FailClosed admits
// nothing, and none is asked where the store always answers in time.
func (j *judge) holdPolicy(f *Figures) {
	e := &f.Experiment
	switch {
	case e.Subject != nil:
	case j.answered > 0 && !e.mayFail():
		f.Problem = append(f.Problem, fmt.Errorf("the failure policy decided %d requests, and nothing had failed", j.answered))
	case j.admits > 0 && e.OnFailure == hybrid.FailClosed:
		f.Problem = append(f.Problem, fmt.Errorf("FailClosed admitted %d requests", j.admits))
	}
}

// mostProblems are told.
const mostProblems = 5

// hold checks a promise of the library; others have made none.
func (f *Figures) hold(key int, c *oracle.Checker, what string) {
	if err := c.Report().Err(); err != nil && f.Experiment.Subject == nil && len(f.Problem) < mostProblems {
		f.Problem = append(f.Problem, fmt.Errorf("key %d breaks %s: %w", key, what, err))
	}
}
