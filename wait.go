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
// lent ahead, and nothing smaller is admitted from the account until it has gone, so a
// cost that fits the burst passes within n/rate, whatever others do (those that hold
// slices go on with them). A turn takes two operations. In a window it asks again when the next one begins. AllowN,
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
	line, place := l.waits.join(key)
	if line == nil {
		return fmt.Errorf("%w: %d wait for this key, allowed %d", ErrTooManyWaiters, l.waits.most, l.waits.most)
	}
	defer l.waits.count.Add(-1)
	leave, leaves := func() { l.waits.leave(key, line, place) }, true
	defer func() {
		if leaves {
			leave()
		}
	}()
	if err := line.await(ctx, place, l.core.Done()); err != nil {
		return err
	}
	for refused := 0; ; refused++ {
		news := l.waits.news()
		after, err := l.ask(ctx, key, n)
		if err != nil || after == 0 {
			return err
		}
		turn, after, err := l.reserve(ctx, key, n, after)
		if turn != nil {
			if passed, err := l.stand(ctx, line, news, turn, leave); passed || err != nil {
				leaves = false // it does when Redis has been told
				return err
			}
			continue
		}
		if err != nil || after == 0 {
			return err
		}
		if err := line.sleep(ctx, after, after+yield(after, refused), news, l.core.Done()); err != nil {
			return err
		}
	}
}

// yield is how much later than it may a caller asks again: less each time that it was refused, so
// that of the callers on several nodes the one that has waited longest asks first.
func yield(after time.Duration, refused int) time.Duration {
	return time.Duration(max(3-refused, 0)) * min(after/64, time.Millisecond)
}

// ask asks for n tokens as AllowN does. It returns when to ask again, 0 if they are there.
func (l *Limiter) ask(ctx context.Context, key string, n int64) (after time.Duration, err error) {
	r, err := l.AllowN(ctx, key, n)
	switch {
	case err != nil || r.Allowed:
		return 0, err
	case r.RetryAfter == Never:
		return 0, fmt.Errorf("%w: cost %d of %d", ErrExceedsBurst, n, r.Limit)
	}
	return r.RetryAfter, nil
}

// reserve asks Redis for the turn of the first in line: its tokens are lent now, and nothing
// smaller overtakes it until it may go. Without a turn it returns when to ask again,
// after if Redis does not say, and 0 if the tokens are there. In a window there is no turn, nor
// while Redis is silent.
func (l *Limiter) reserve(ctx context.Context, key string, n int64, after time.Duration) (*syncer.Turn, time.Duration, error) {
	a := l.core.Account(exact.CellKey(key), key)
	if a.Plan().Rule.Window > 0 {
		return nil, after, nil
	}
	answer, turn, ok, err := a.Reserve(ctx, n)
	switch {
	case errors.Is(err, syncer.ErrDown) || err == nil && (!ok || answer.RetryAfter == 0 && !answer.Allowed):
		return nil, after, nil
	case err != nil || answer.Allowed:
		return turn, 0, err
	}
	return nil, answer.RetryAfter, nil
}

// stand waits for a turn and uses it. A caller that does not go, as its ctx or the limiter
// ends, gives the turn back. Either leaves the line when Redis has been told: before that
// the next one would ask in vain. If there is news, or the turn's lease was lost, it
// gives the turn back and returns with neither, to ask again.
func (l *Limiter) stand(ctx context.Context, line *line, news <-chan struct{}, turn *syncer.Turn, leave func()) (passed bool, err error) {
	under := l.node.undoing.enter() // the end of a limiter waits for what is to be given back
	told := func() { l.node.undoing.leave(under) }
	for !closed(news) {
		if turn.Usable() {
			turn.Go(func() { leave(); told() })
			return true, nil
		}
		goes, due := turn.Left()
		if due <= 0 {
			if !turn.Renew(ctx) {
				break
			}
			continue
		}
		if err := line.sleep(ctx, goes, due, news, l.core.Done()); err != nil {
			line.forget() // the next one does not wait for this one's turn
			turn.GiveUp(func() { leave(); told() })
			return false, err
		}
	}
	back := make(chan struct{})
	turn.GiveUp(func() { close(back); told() })
	select {
	case <-back:
	case <-ctx.Done():
	}
	return false, nil
}

// closed reports whether a channel is closed.
func closed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

// waits is the lines of callers that wait, by key. Only keys that somebody
// waits for are in it.
type waits struct {
	most  int          // places in one line
	count atomic.Int64 // callers: one that has left may leave its place later
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

// await waits for the caller's turn.
func (ln *line) await(ctx context.Context, turn, ended <-chan struct{}) error {
	if closed(turn) {
		return nil
	}
	if err := tooLate(ctx, ln.earliest()); err != nil {
		return err
	}
	select {
	case <-turn:
		return nil
	case <-ended:
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
	if closed(ln.news) {
		return time.Time{} // the first one may not have noticed yet
	}
	return ln.next
}

// forget drops what was known of when the first one passes.
func (ln *line) forget() {
	ln.mu.Lock()
	defer ln.mu.Unlock()
	ln.next = time.Time{}
}

// sleep waits for a while before the first caller asks again or uses its turn, which is
// not before next; or until there is news.
func (ln *line) sleep(ctx context.Context, next, d time.Duration, news, ended <-chan struct{}) error {
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
