package hybrid

import (
	"context"
	"math"
	"strconv"
	"time"

	"github.com/hybridlimit/hybrid/exact"
	"github.com/hybridlimit/hybrid/internal/oracle"
	"github.com/hybridlimit/hybrid/slice"
)

// This file is what a fleet's admissions are judged by.

// tracedStore notes what the store admits, with the store's own time.
type tracedStore struct {
	*exact.Store
	f    *fleet
	node int
}

func (s *tracedStore) Settle(ctx context.Context, batch []*slice.Settle) {
	s.underWay(batch, 1)
	s.Store.Settle(ctx, batch)
	s.underWay(batch, -1)
	s.f.mu.Lock()
	defer s.f.mu.Unlock()
	for _, st := range batch {
		switch st.Outcome {
		case slice.NotRun:
			continue
		case slice.Unknown:
			s.f.executed++
			s.f.lost += spokenOf(st)
			continue
		}
		s.f.executed++
		at := st.Grant.Clock*1000 - int64(s.f.skew)
		for i, need := range st.Usage.Needs {
			v := verdict{s.node, st.Account, need.Cost}
			for range st.Grant.Admitted[i] {
				s.f.verdicts[v] = append(s.f.verdicts[v], at)
			}
		}
	}
}

// spokenOf returns the tokens that the store may hold for used, though nobody
// used them, if nobody hears the reply: what is given back is not told again, and what is
// charged is, so that it may be charged twice.
func spokenOf(st *slice.Settle) int64 {
	u := &st.Usage
	tokens := u.Returned + u.Held + u.Want + int64(math.Ceil(u.Return+max(u.Charged, 0)+u.Fallback))
	for _, need := range st.Usage.Needs {
		tokens += need.Cost * need.Count
	}
	return tokens
}

// underWay counts the settles of each account that this node has under way.
func (s *tracedStore) underWay(batch []*slice.Settle, change int) {
	s.f.mu.Lock()
	defer s.f.mu.Unlock()
	for _, st := range batch {
		id := strconv.Itoa(s.node) + " " + st.Account
		s.f.settling[id] += change
		s.f.most = max(s.f.most, s.f.settling[id])
	}
}

// note keeps an admission for the oracle. One by the store counts when the
// store made it, which is what the store said of it last; others count now. A
// verdict that comes when its caller has left is no admission. The caller holds mu.
func (f *fleet) note(node int, account string, cost int64, path Path) {
	at := time.Now().UnixNano()
	if path == PathExact {
		v := verdict{node, account, cost}
		said := f.verdicts[v]
		if len(said) == 0 {
			f.t.Errorf("node %d was admitted %d by the store, which knows nothing of it", node, cost)
			return
		}
		at, f.verdicts[v] = said[len(said)-1], said[:len(said)-1]
	}
	f.admitted[account] = append(f.admitted[account], oracle.Admission{At: at, Cost: cost})
}

// checkBound fails the test if any key's admissions exceed (1+over) of a limit
// in any interval.
func (f *fleet) checkBound(l Limit, over float64) {
	f.t.Helper()
	f.mu.Lock()
	defer f.mu.Unlock()
	for account, list := range f.admitted {
		if err := oracleOf(l).Over(over).Check(list).Err(); err != nil {
			f.t.Errorf("%s, %v over %v: %v", account, l, over, err)
		}
	}
}

// tally is what a fleet has cost so far. Nodes go on settling in the background.
type tally struct {
	most     int   // settles of one account and node under way at once
	executed int   // settles that the store executed, or may have
	lost     int64 // tokens that settles without a reply spoke of
	requests int
}

func (f *fleet) tallied() tally {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.tally
}

// checkCost fails the test if Redis executed more operations than there were
// requests.
func (f *fleet) checkCost() {
	f.t.Helper()
	if n := f.tallied(); n.executed > n.requests {
		f.t.Errorf("%d operations for %d requests", n.executed, n.requests)
	}
}

func oracleOf(l Limit) oracle.Limit {
	if l.Windowed() {
		return oracle.NewWindow(l.Count(), l.Period())
	}
	return oracle.New(l.Count(), l.Period(), l.Burst())
}
