package exact

import (
	"errors"
	"net"
	"slices"
	"strings"

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
		errors.As(err, &reply) && isRefusal(reply.Error()):
		return slice.NotRun
	}
	return slice.Unknown
}

// refusalCodes begin the replies that Redis 6.2 to 7, Valkey and their clusters give
// before they execute a script.
var refusalCodes = []string{
	"ASK", "BUSY", "CLUSTERDOWN", "CROSSSLOT", "DENIED", "LOADING", "MASTERDOWN", "MISCONF", "MOVED", "NOAUTH", "NOPERM",
	"NOREPLICAS", "NOSCRIPT", "OOM", "READONLY", "TRYAGAIN", "WRONGPASS",
}

// refusalTexts are those of them that have no code but ERR.
var refusalTexts = []string{
	"ERR unknown command",
	"ERR wrong number of arguments",
	"ERR max number of clients",
	"ERR Protocol error",
	"ERR AUTH ", // no password is configured any more
	"ERR DB index is out of range",
	"ERR Error compiling script",
	"ERR ACL failure in script: ",                              // the same of Redis 8 and Valkey 8
	"ERR The user executing the script can't run this command", // which is TIME, the script's first
}

// isRefusal reports whether an error reply is a refusal. Any other text may come from
// a proxy, whose server may have executed the command: "ERR Connection timed out" of
// twemproxy, "upstream failure" of Envoy.
func isRefusal(reply string) bool {
	if raised(reply) {
		return false
	}
	code, _, more := strings.Cut(reply, " ")
	return more && slices.Contains(refusalCodes, code) ||
		slices.ContainsFunc(refusalTexts, func(text string) bool { return strings.HasPrefix(reply, text) })
}

// raised reports whether a script was broken off, with whatever code, perhaps after it
// had written. Those of this package are not, on any server that we know.
func raised(reply string) bool {
	return strings.HasPrefix(reply, "ERR Error running script") || // Redis 6
		strings.Contains(reply, ", on @user_script:") // Redis 7
}
