package syncer

import "errors"

var (
	// ErrClosed is the answer to a request on a limiter or node that is closed.
	ErrClosed = errors.New("hybrid: closed")

	// ErrUnsettled is the answer to who asked for settles that the store did not take.
	ErrUnsettled = errors.New("hybrid: the store did not take all settles; what they held lapses with its lease")
)

// What is said of the store where it says nothing itself.
var (
	ErrSlow    = errors.New("more than one call in twenty took longer than StoreTimeout")
	ErrDown    = errors.New("the store does not answer")
	ErrTimeout = errors.New("no answer from the store in time")
)
