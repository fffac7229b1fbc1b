package key

import "github.com/hybridlimit/hybrid/slice"

// purpose is what a settle is for beyond the requests that wait.
type purpose struct {
	kind kind
	keep int64 // for giveBack: tokens that stay
}

type kind uint8

const (
	serve    kind = iota // requests only
	refill               // report, renew and ask for more
	poll                 // the same for an exhausted key: share by demand
	giveBack             // return all but keep
)

// inflight answers: what is under way, and for whom? A key has one settle at a time.
type inflight struct {
	waiting []*Waiter // for the next settle
	sent    []*Waiter // whose needs the settle under way carries
	since   int64     // ns, when a request began to wait for the settle
	sentAt  int64     // ns, before the call entered the client

	keep          int64 // of the purpose
	kind          kind  // of the purpose
	phase         phase
	limitChanged  bool // the slice was lent under another limit, and must go back
	resetInFlight bool // the key was reset since the settle under way was sent: what it says of the account is over
}

// phase is how far the settle is.
type phase uint8

const (
	idle       phase = iota
	background       // queued, and no request waits for it
	queued           // a request waits for it; or it is with the store already
)

// busy reports whether a settle is queued or under way.
func (f *inflight) busy() bool { return f.phase != idle }

// begin starts a settle; one that is queued in the background goes at once if it is
// waited for now. It returns what the shell has to do.
func (f *inflight) begin(p purpose, how Send, now int64) Send {
	switch {
	case how == SendNow && f.phase == background:
		f.phase, f.since = queued, now
		return SendNow
	case f.busy():
		return SendNothing
	case how == SendNow:
		f.phase, f.kind, f.keep, f.since = queued, p.kind, p.keep, now
	default:
		f.phase, f.kind, f.keep = background, p.kind, p.keep
	}
	return how
}

// sentNow says that the settle leaves: what comes from here on waits for its end.
func (f *inflight) sentNow(now int64) {
	if f.phase == background {
		f.phase, f.since = queued, now
	}
}

// end ends the settle, and returns those whose needs it carried.
func (f *inflight) end() []*Waiter {
	sent := f.sent
	f.sent, f.phase, f.kind, f.keep = nil, idle, serve, 0
	return sent
}

// needs moves the requests that wait into the settle, neighbours of equal cost as one
// run. What exceeds the runs of one settle waits for the next. A reservation ends them: what
// the reply says is used is then what stands before it.
func (f *inflight) needs() (runs []slice.Need, reset bool) {
	i := 0
	for ; i < len(f.waiting); i++ {
		w := f.waiting[i]
		if w.left {
			continue
		}
		if w.waits {
			runs = append(runs, slice.Need{Cost: w.Cost})
			w.sent = true
			f.sent = append(f.sent, w)
			i++
			break
		}
		if w.Cost > 0 {
			if n := len(runs); n > 0 && runs[n-1].Cost == w.Cost {
				runs[n-1].Count++
			} else if n == slice.MaxRuns {
				break
			} else {
				runs = append(runs, slice.Need{Cost: w.Cost, Count: 1})
			}
			w.sent = true
		}
		reset = reset || w.reset
		f.sent = append(f.sent, w)
	}
	f.leaveWaiting(f.waiting[i:])
	return runs, reset
}

// leaveWaiting leaves these requests waiting. Answered ones must not stay reachable.
func (f *inflight) leaveWaiting(rest []*Waiter) {
	n := copy(f.waiting, rest)
	clear(f.waiting[n:])
	f.waiting = f.waiting[:n]
	if n == 0 {
		f.waiting = nil
	}
}
