package hybrid

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/hybridlimit/hybrid/exact"
	"github.com/hybridlimit/hybrid/syncer"
)

// Wait is WaitN of one token.
func (l *Limiter) Wait(ctx context.Context, key string) error { return l.WaitN(ctx, key, 1) }

// WaitN waits until a request of n tokens passes. Callers of one key on one node pass in
// the order in which they came. The first of them takes its turn in Redis: its tokens are
// charged ahead, and nothing smaller is admitted from the account until it has gone, so a
// cost that fits the burst passes within n/rate, whatever others do (those that hold
// slices go on with them). In a window it asks again when the next one begins. AllowN,
// which does not wait, has no turn. n = 0 does not wait. SetLimit, and a
// Reset on this node, let those who wait ask again; a limit that LimitFor raises, and a
// Reset elsewhere, do not: they wait for as long as they were told.
//
// It returns at once, with an error that is context.DeadlineExceeded, if ctx ends
// before the caller may ask again or, where others stand before it, before the first
// of them may. How long those others will take is not guessed, for they may leave and
// tokens may come back: behind them a caller may wait in vain until ctx ends. With
// ErrExceedsBurst it returns at once if n can never pass, with ErrTooManyWaiters if
// LimiterOptions.MaxWaiters callers wait for the key on this node. Otherwise it fails like AllowN.
func (l *Limiter) WaitN(ctx context.Context, key string, n int64) error {
	if err := l.usable(key, n); err != nil {
		return err
	}
	if n == 0 || ctx.Err() != nil {
		return ctx.Err()
	}
	if plan := l.planAhead(key); !plan.Fits(n) && !l.opts.Shadow {
		return fmt.Errorf("%w: cost %d of %d", ErrExceedsBurst, n, plan.Rule.Burst)
	}
	line, turn := l.waits.join(key)
	if line == nil {
		return fmt.Errorf("%w: %d wait for this key, allowed %d", ErrTooManyWaiters, l.waits.most, l.waits.most)
	}
	defer l.waits.leave(key, line, turn)
	if err := line.await(ctx, turn, l.core.Done()); err != nil {
		return err
	}
	for {
		news := l.waits.news()
		r, err := l.AllowN(ctx, key, n)
		switch {
		case err != nil || r.Allowed:
			return err
		case r.RetryAfter == Never:
			return fmt.Errorf("%w: cost %d of %d", ErrExceedsBurst, n, r.Limit)
		}
		after := r.RetryAfter
		if r.Path != PathFallback {
			turn, err := l.reserve(ctx, line, news, key, n)
			if turn.Allowed || err != nil {
				return err
			}
			if turn.RetryAfter > 0 {
				after = turn.RetryAfter
			}
		}
		if err := line.sleep(ctx, after, news, l.core.Done()); err != nil {
			return err
		}
	}
}

// reserve takes the turn of the first in line: Redis charges its tokens now, and nothing
// smaller overtakes it until it may go. In a window there is no turn: it asks again when
// the next one begins.
func (l *Limiter) reserve(ctx context.Context, line *line, news <-chan struct{}, key string, n int64) (turn syncer.Answer, err error) {
	cell := exact.CellKey(key)
	a := l.core.Account(cell, key)
	if a.Plan().Rule.Window > 0 {
		return turn, nil
	}
	turn, ok, err := a.Reserve(ctx, n)
	switch {
	case errors.Is(err, syncer.ErrDown):
		return syncer.Answer{}, nil
	case err != nil || !ok || !turn.Allowed || turn.Path == PathFallback || turn.RetryAfter == 0:
		return turn, err
	}
	goes := time.Now().Add(turn.RetryAfter)
	err = line.sleep(ctx, turn.RetryAfter, news, l.core.Done())
	if early := time.Until(goes) > 0; err == nil && !early {
		return turn, nil
	}
	_ = l.Refund(key, n) // it does not go after all, or asks again by another limit
	return syncer.Answer{RetryAfter: time.Nanosecond}, err
}

// waits is the lines of callers that wait, by key. Only keys that somebody
// waits for are in it.
type waits struct {
	most  int // callers in one line
	count atomic.Int64
	mu    sync.Mutex
	lines map[string]*line
	woken chan struct{} // closed and replaced when a limit has changed or a key was reset
}

func newWaits(most int) *waits {
	return &waits{most: most, lines: make(map[string]*line), woken: make(chan struct{})}
}

// news returns a channel that is closed when it is worth asking again.
func (w *waits) news() <-chan struct{} {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.woken
}

// wake makes the first of each line ask again.
func (w *waits) wake() {
	w.mu.Lock()
	defer w.mu.Unlock()
	close(w.woken)
	w.woken = make(chan struct{})
}

// line is the callers of one key, first come first served. The first one asks;
// the others wait for their turn.
type line struct {
	mu    sync.Mutex // after waits.mu
	turns []chan struct{}
	next  time.Time       // the first one asks again then, and nobody passes earlier; zero: it is asking
	news  <-chan struct{} // when it is closed, next is void: the first one asks now
}

// join puts a caller at the end of its line; without a line if that is too long.
func (w *waits) join(key string) (*line, chan struct{}) {
	w.mu.Lock()
	defer w.mu.Unlock()
	ln := w.lines[key]
	if ln == nil {
		ln = &line{}
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

// leave takes a caller out, wherever it stands, and gives the turn on if it was
// the first.
func (w *waits) leave(key string, ln *line, turn chan struct{}) {
	w.mu.Lock()
	defer w.mu.Unlock()
	ln.mu.Lock()
	defer ln.mu.Unlock()
	for i, t := range ln.turns {
		if t != turn {
			continue
		}
		ln.turns = append(ln.turns[:i], ln.turns[i+1:]...)
		w.count.Add(-1)
		if i == 0 {
			ln.next = time.Time{} // that was for its cost; what the next one waits for is not known
		}
		if i == 0 && len(ln.turns) > 0 {
			close(ln.turns[0])
		}
		break
	}
	if len(ln.turns) == 0 {
		delete(w.lines, key)
	}
}

// await waits for the caller's turn.
func (ln *line) await(ctx context.Context, turn, closed <-chan struct{}) error {
	select {
	case <-turn:
		return nil
	default:
	}
	if err := tooLate(ctx, ln.earliest()); err != nil {
		return err
	}
	select {
	case <-turn:
		return nil
	case <-closed:
		return ErrClosed
	case <-ctx.Done():
		return ctx.Err()
	}
}

// earliest returns the moment before which nobody passes; zero if that is not
// known.
func (ln *line) earliest() time.Time {
	ln.mu.Lock()
	defer ln.mu.Unlock()
	select {
	case <-ln.news:
		return time.Time{} // the first one may not have noticed yet
	default:
		return ln.next
	}
}

// sleep waits before the first caller asks again: so long, or until there is
// news.
func (ln *line) sleep(ctx context.Context, d time.Duration, news, closed <-chan struct{}) error {
	next := time.Now().Add(d)
	if err := tooLate(ctx, next); err != nil {
		return err
	}
	ln.mu.Lock()
	ln.next, ln.news = next, news
	ln.mu.Unlock()
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-news:
		return nil
	case <-closed:
		return ErrClosed
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
