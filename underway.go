package hybrid

import "sync/atomic"

// underway counts calls under way, so that an end can wait for those that began before it.
// Calls are counted by turns: an end begins the next turn and waits for the last one, so
// calls that begin meanwhile do not put it off. It takes no lock.
type underway struct {
	turn  atomic.Uint32
	calls [2]atomic.Int64                  // by parity of the turn
	idle  [2]atomic.Pointer[chan struct{}] // gets a value when no call of that turn is left; nil: not waited for
}

// enter counts a call, and returns the turn for leave.
func (u *underway) enter() (turn uint32) {
	for {
		turn = u.turn.Load() & 1
		u.calls[turn].Add(1)
		if u.turn.Load()&1 == turn {
			return turn
		}
		u.leave(turn) // an end came in between
	}
}

func (u *underway) leave(turn uint32) {
	if u.calls[turn].Add(-1) > 0 {
		return
	}
	if idle := u.idle[turn].Load(); idle != nil {
		select {
		case *idle <- struct{}{}:
		default:
		}
	}
}

// wait returns when the calls that began before it have ended. One end at a time.
func (u *underway) wait() {
	idle := make(chan struct{}, 1)
	last := u.turn.Load() & 1
	u.idle[last].Store(&idle)
	u.turn.Add(1)
	if u.calls[last].Load() > 0 {
		<-idle
	}
	u.idle[last].Store(nil)
}
