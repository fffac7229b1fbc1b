package syncer

import "errors"

var (
	// ErrClosed is the answer to a request on a limiter or node that is closed.
	ErrClosed = errors.New("hybrid: closed")

	errSlow      = errors.New("more than one call in twenty took longer than StoreTimeout")
	errUnsettled = errors.New("hybrid: the store did not take all settles; what they held lapses with its lease")
	errDown      = errors.New("the store does not answer")
	errTimeout   = errors.New("no answer from the store in time")
)
