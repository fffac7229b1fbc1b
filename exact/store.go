package exact

import (
	"fmt"
	"strings"
	"sync/atomic"

	"github.com/redis/go-redis/v9"
)

// Options are the optional settings of a [Store]. The zero value and nil
// mean the defaults.
type Options struct {
	// Prefix starts every name in Redis; one per service. At most 200
	// bytes, no braces, no control characters. Default "hybrid".
	Prefix string
}

// Store is a set of accounts in Redis (6.2 or later) or Valkey. It is safe
// for concurrent use, keeps no state but the connections of its client, and
// never closes the client.
type Store struct {
	rdb    redis.UniversalClient
	prefix string
	lanes  lanes

	single atomic.Bool // a multi-key call met CROSSSLOT: one account per call from now on
}

// New returns a Store on any client of go-redis: Client (also with Sentinel),
// ClusterClient, Ring. It does no I/O, so it works while Redis is down.
// It fails with [ErrInvalidOption].
func New(rdb redis.UniversalClient, opts *Options) (*Store, error) {
	if rdb == nil {
		return nil, fmt.Errorf("%w: the client is nil", ErrInvalidOption)
	}
	s := &Store{rdb: rdb, prefix: "hybrid"}
	if opts != nil && opts.Prefix != "" {
		s.prefix = opts.Prefix
	}
	if len(s.prefix) > 200 || strings.ContainsFunc(s.prefix, badInPrefix) {
		return nil, fmt.Errorf("%w: Options.Prefix: %q, allowed 1 to 200 bytes without braces and control characters", ErrInvalidOption, s.prefix)
	}
	s.divide()
	return s, nil
}

// badInPrefix rejects what would change the hash slot or a log line.
func badInPrefix(r rune) bool { return r < ' ' || r == 0x7f || r == '{' || r == '}' }
