package exact

import (
	"errors"
	"net"

	"github.com/redis/go-redis/v9"

	"github.com/hybridlimit/hybrid/slice"
)

// outcomeOf says what an error tells about a command that was sent at most
// once. Only what proves that the server did not execute it is NotRun: no
// connection, or a refusal in the server's own words. A timeout, a broken
// connection and an ended context leave it unknown.
func outcomeOf(err error) slice.Outcome {
	var op *net.OpError
	var reply redis.Error
	switch {
	case isNotSent(err),
		errors.Is(err, redis.ErrClosed), errors.Is(err, redis.ErrPoolTimeout), errors.Is(err, redis.ErrPoolExhausted),
		errors.As(err, &op) && op.Op == "dial",
		errors.As(err, &reply) && hasCode(reply.Error()):
		return slice.NotRun
	}
	return slice.Unknown
}

// hasCode reports whether an error reply starts with a code in capitals, as
// all of Redis's do. Proxies speak otherwise ("upstream failure"), also when
// the server behind them may have executed the command.
func hasCode(reply string) bool {
	for i := range len(reply) {
		switch c := reply[i]; {
		case c >= 'A' && c <= 'Z':
		default:
			return i > 1 && c == ' '
		}
	}
	return false
}
