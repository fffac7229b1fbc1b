package syncer

import (
	"errors"

	"github.com/hybridlimit/hybrid/internal/batch"
)

var (
	// ErrClosed is the answer to a request on a limiter or node that is closed.
	ErrClosed = errors.New("hybrid: closed")

	// ErrUnsettled says that the store did not take all that it was to be told.
	ErrUnsettled = errors.New("hybrid: the store did not take all settles; what they held ends with its lease")
)

// What is said of the store where it says nothing itself.
var (
	ErrSlow    = batch.ErrSlow
	ErrDown    = batch.ErrDown
	ErrTimeout = batch.ErrTimeout
)
