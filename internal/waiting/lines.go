// Package waiting keeps the callers of one node that wait for keys, in the order in which they
// came: the first one of a key asks, and the others wait for it.
package waiting

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/hybridlimit/hybrid/syncer"
)

// Lines are the callers that wait, by key: only keys that are waited for are in it.
type Lines struct {
	most  int          // places in one line
	count atomic.Int64 // callers: one that has left may leave its place later
	mu    sync.Mutex
	lines map[string]*Line
	woken chan struct{} // closed and replaced when a limit has changed or a key was reset
}

// New makes lines of so many places each.
func New(most int) *Lines {
	return &Lines{most: most, lines: make(map[string]*Line), woken: make(chan struct{})}
}

// Most is how many places a line has.
func (w *Lines) Most() int { return w.most }

// Callers is how many wait, in all lines.
func (w *Lines) Callers() int { return int(w.count.Load()) }

// Done says that a caller waits no more.
func (w *Lines) Done() { w.count.Add(-1) }

// News returns a channel that is closed when it is worth asking again.
func (w *Lines) News() <-chan struct{} {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.woken
}

// Wake makes the first of each line ask again.
func (w *Lines) Wake() {
	w.mu.Lock()
	defer w.mu.Unlock()
	close(w.woken)
	w.woken = make(chan struct{})
}

// Line is the callers of one key, first come first served. The first one asks;
// the others wait for their turn.
type Line struct {
	mu    sync.Mutex // after Lines.mu
	turns []chan struct{}
	next  time.Time       // the first one asks again then, and nobody passes earlier; zero: it is asking
	news  <-chan struct{} // when it is closed, next is void: the first one asks now
}

// Join puts a caller at the end of its line; without a line if that is too long.
func (w *Lines) Join(key string) (*Line, chan struct{}) {
	w.mu.Lock()
	defer w.mu.Unlock()
	ln := w.lines[key]
	if ln == nil {
		ln = &Line{}
		w.lines[key] = ln
	}
	turn := make(chan struct{})
	ln.mu.Lock()
	defer ln.mu.Unlock()
	if len(ln.turns) >= w.most {
		return nil, nil
	}
	w.count.Add(1)
	ln.turns = append(ln.turns, turn)
	if len(ln.turns) == 1 {
		close(turn)
	}
	return ln, turn
}

// Leave takes a caller out, wherever it stands, and gives the turn on if it was
// the first.
func (w *Lines) Leave(key string, ln *Line, turn chan struct{}) {
	w.mu.Lock()
	defer w.mu.Unlock()
	ln.mu.Lock()
	defer ln.mu.Unlock()
	for i, t := range ln.turns {
		if t != turn {
			continue
		}
		ln.turns = append(ln.turns[:i], ln.turns[i+1:]...)
		if i == 0 {
			ln.next = time.Time{} // that was for its cost
		}
		if i == 0 && len(ln.turns) > 0 {
			close(ln.turns[0])
		}
		break
	}
	if len(ln.turns) == 0 && w.lines[key] == ln {
		delete(w.lines, key)
	}
}

// Await waits for the caller's turn.
func (ln *Line) Await(ctx context.Context, turn, ended <-chan struct{}) error {
	if Closed(turn) {
		return nil
	}
	if err := tooLate(ctx, ln.earliest()); err != nil {
		return err
	}
	select {
	case <-turn:
		return nil
	case <-ended:
		return syncer.ErrClosed
	case <-ctx.Done():
		return ctx.Err()
	}
}

// earliest returns the moment before which nobody passes; zero if that is not
// known.
func (ln *Line) earliest() time.Time {
	ln.mu.Lock()
	defer ln.mu.Unlock()
	if Closed(ln.news) {
		return time.Time{} // the first one may not have noticed yet
	}
	return ln.next
}

// Forget drops what was known of when the first one passes.
func (ln *Line) Forget() {
	ln.mu.Lock()
	defer ln.mu.Unlock()
	ln.next = time.Time{}
}

// Sleep waits for a while before the first caller asks again or uses its turn, which is
// not before next; or until there is news.
func (ln *Line) Sleep(ctx context.Context, next, d time.Duration, news, ended <-chan struct{}) error {
	passes := time.Now().Add(next)
	if err := tooLate(ctx, passes); err != nil {
		return err
	}
	ln.mu.Lock()
	ln.next, ln.news = passes, news
	ln.mu.Unlock()
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-news:
		return nil
	case <-ended:
		return syncer.ErrClosed
	case <-ctx.Done():
		return ctx.Err()
	}
}

// tooLate fails if ctx ends before a moment.
func tooLate(ctx context.Context, moment time.Time) error {
	if deadline, ok := ctx.Deadline(); ok && deadline.Before(moment) {
		return fmt.Errorf("hybrid: the wait would exceed the context's deadline: %w", context.DeadlineExceeded)
	}
	return nil
}

// Closed reports whether a channel is closed.
func Closed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}
