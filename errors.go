package hybrid

import (
	"errors"

	"github.com/hybridlimit/hybrid/exact"
	"github.com/hybridlimit/hybrid/syncer"
)

// Errors of this package. Each is wrapped with the field, the value and the
// allowed range where that applies: test with errors.Is. With any error the
// Result is zero, and so not allowed. A denial is not an error.
var (
	ErrClosed           = syncer.ErrClosed       // the Limiter or its Node is closed
	ErrUnsettled        = syncer.ErrUnsettled    // Redis did not take all that Flush, Shutdown or Close had to tell
	ErrInvalidLimit     = exact.ErrInvalidLimit  // also Limit{}
	ErrInvalidOption    = exact.ErrInvalidOption // in Options, LimiterOptions, or a name
	ErrInvalidCost      = exact.ErrInvalidCost   // below 0; for Refund and Charge also above 2^53
	ErrInvalidAccuracy  = errors.New("hybrid: invalid accuracy")
	ErrInvalidKey       = errors.New("hybrid: invalid key") // longer than 64 KiB
	ErrDuplicateLimiter = errors.New("hybrid: duplicate limiter")
	ErrTooManyWaiters   = errors.New("hybrid: too many waiters")       // only from Wait and WaitN: LimiterOptions.MaxWaiters
	ErrExceedsBurst     = errors.New("hybrid: cost exceeds the burst") // only from Wait and WaitN
)
