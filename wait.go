package hybrid

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/hybridlimit/hybrid/exact"
	"github.com/hybridlimit/hybrid/internal/waiting"
	"github.com/hybridlimit/hybrid/syncer"
)

// Wait is WaitN of one token.
func (l *Limiter) Wait(ctx context.Context, key string) error { return l.WaitN(ctx, key, 1) }

// WaitN waits until a request of n tokens passes. Callers of one key on one node pass in
// the order in which they came. The first of them takes its turn in Redis: its tokens are
// lent ahead, and nothing smaller is admitted from the account until it has gone, so a
// cost that fits the burst passes within n/rate, whatever others do (those that hold
// slices go on with them). A turn takes two operations. In a window it asks again when the next one begins. AllowN,
// which does not wait, has no turn. n = 0 does not wait. Of callers on several nodes the one that
// has waited longest asks first. SetLimit, another limit from LimitFor and a Reset on this node
// let those who wait ask again; a Reset elsewhere does not.
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
	line, place := l.waits.Join(key)
	if line == nil {
		return fmt.Errorf("%w: %d wait for this key, allowed %d", ErrTooManyWaiters, l.waits.Most(), l.waits.Most())
	}
	defer l.waits.Done()
	leave, leaves := func() { l.waits.Leave(key, line, place) }, true
	defer func() {
		if leaves {
			leave()
		}
	}()
	if err := line.Await(ctx, place, l.core.Done()); err != nil {
		return err
	}
	for refused := 0; ; refused++ {
		news := l.waits.News()
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
		if err := line.Sleep(ctx, after, after+yield(after, refused), news, l.core.Done()); err != nil {
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
func (l *Limiter) stand(ctx context.Context, line *waiting.Line, news <-chan struct{}, turn *syncer.Turn, leave func()) (passed bool, err error) {
	under := l.node.undoing.enter() // the end of a limiter waits for what is to be given back
	told := func() { l.node.undoing.leave(under) }
	for !waiting.Closed(news) {
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
		if err := line.Sleep(ctx, goes, due, news, l.core.Done()); err != nil {
			line.Forget() // the next one does not wait for this one's turn
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
