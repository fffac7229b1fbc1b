package hybrid

import (
	"cmp"
	"crypto/rand"
	"encoding/hex"
	"fmt"
	"log/slog"
	"time"

	"github.com/hybridlimit/hybrid/internal/key"
	"github.com/hybridlimit/hybrid/syncer"
)

// Options are the settings of a Node. The zero value of each field means its
// default.
type Options struct {
	SyncInterval time.Duration // of settles that nobody waits for: returns, charges, refills in good time; 1 ms to 10 s, default 100 ms. Heartbeats come every second
	StoreTimeout time.Duration // the longest that one call waits for Redis; 1 ms to 10 s, default 20 ms. Should exceed two round trips: the node measures and warns
	Prefix       string        // of all keys in Redis, one per service; 1 to 200 bytes without braces and control characters, default "hybrid"
	NodeID       string        // for whoever reads the registry in Redis; up to 128 bytes, default random. A repeated one is harmless
	Servers      int           // the least fleet size; 0 to 100,000, default 0 = as many as heartbeats show
	MaxKeys      int           // bound on the keys that the node remembers; 1 to 1<<30, default 1<<20. Beyond, the least used are forgotten and their slices returned
	Hooks        Hooks

	// Logger is told of state changes and misuse only, never of single
	// requests, and by default of no key, no address and no secret. Its handler
	// is called from a goroutine of the node: lines that it is too slow for, or
	// that it panics at, are counted (Stats.LogsDropped). Default slog.Default().
	Logger *slog.Logger

	// LogKey returns how a log line may name a key: the key itself, a part or a
	// hash of it. A key beyond 64 bytes comes as "#" and its SHA-256. It is called
	// from the Logger's goroutine, and a panic is recovered. nil: no line names
	// a key.
	LogKey func(limiter, key string) string
}

// LimiterOptions are the settings of a Limiter. The zero value of each field
// means its default.
type LimiterOptions struct {
	Accuracy  Accuracy      // default Balanced
	OnFailure FailurePolicy // default FailLocal

	// LimitFor gives keys limits of their own (tiers); false means the
	// limiter's. It is called from any goroutine when a key is first seen, and
	// again for requests that no slice serves and at settles, at most once per
	// SyncInterval and key, and never under a lock: a change counts for the next such
	// request. A key evicted by MaxKeys is new again, and requests that meet a new
	// key at the same moment may ask once each. Limit asks it at each call, and so do
	// Peek, Inspect and Reset for a key that the node does not know or that has a
	// limit of 0, once or twice; it must not call them.
	// It must answer from memory, in microseconds: settles of other keys wait for
	// it. An invalid limit or a panic is counted, logged once (of a panic the type),
	// and answered with the limiter's own limit.
	LimitFor func(key string) (Limit, bool)

	// Shadow decides and counts, but always allows.
	Shadow bool

	// MaxWaiters bounds the callers of Wait that one key may have on this node; 1 to
	// 1<<20, default 1<<14. More get ErrTooManyWaiters at once.
	MaxWaiters int

	// StoreTimeout is Options.StoreTimeout for this limiter alone: a login may wait longer
	// than a feed. 1 ms to 10 s, default that of the node.
	StoreTimeout time.Duration
}

// FailurePolicy is what a limiter answers while Redis does not. Its String is the name of
// the constant.
type FailurePolicy = syncer.Policy

const (
	FailLocal  FailurePolicy = key.FailLocal  // each node admits its fair share of the limit
	FailOpen   FailurePolicy = key.FailOpen   // everything is admitted
	FailClosed FailurePolicy = key.FailClosed // everything is denied
)

// Bounds of the options.
const (
	shortest      = time.Millisecond
	longest       = 10 * time.Second
	mostServers   = 100_000
	mostMaxKeys   = 1 << 30
	longestNodeID = 128
	longestName   = 256
	longestKey    = 64 << 10
	mostWaiters   = 1 << 20
)

// withDefaults returns a copy that is complete and valid, or an error that
// names the field, its value and the allowed range.
func (o *Options) withDefaults() (Options, error) {
	var full Options
	if o != nil {
		full = *o
	}
	full.SyncInterval = cmp.Or(full.SyncInterval, 100*time.Millisecond)
	full.StoreTimeout = cmp.Or(full.StoreTimeout, 20*time.Millisecond)
	full.MaxKeys = cmp.Or(full.MaxKeys, 1<<20)
	full.Prefix = cmp.Or(full.Prefix, "hybrid")
	if full.Logger == nil {
		full.Logger = slog.Default()
	}
	return full, full.validate()
}

func (o *Options) validate() error {
	switch {
	case o.SyncInterval < shortest || o.SyncInterval > longest:
		return invalid("Options.SyncInterval", o.SyncInterval, "1ms to 10s")
	case o.StoreTimeout < shortest || o.StoreTimeout > longest:
		return invalid("Options.StoreTimeout", o.StoreTimeout, "1ms to 10s")
	case len(o.NodeID) > longestNodeID:
		return invalid("Options.NodeID", fmt.Sprintf("%d bytes", len(o.NodeID)), "up to 128 bytes")
	case o.Servers < 0 || o.Servers > mostServers:
		return invalid("Options.Servers", o.Servers, "0 to 100000")
	case o.MaxKeys < 1 || o.MaxKeys > mostMaxKeys:
		return invalid("Options.MaxKeys", o.MaxKeys, "1 to 1073741824")
	}
	return nil
}

func (o *LimiterOptions) validate() error {
	switch {
	case o.OnFailure > FailClosed:
		return invalid("LimiterOptions.OnFailure", o.OnFailure, "FailLocal, FailOpen or FailClosed")
	case o.MaxWaiters < 0 || o.MaxWaiters > mostWaiters:
		return invalid("LimiterOptions.MaxWaiters", o.MaxWaiters, "1 to 1048576")
	case o.StoreTimeout != 0 && (o.StoreTimeout < shortest || o.StoreTimeout > longest):
		return invalid("LimiterOptions.StoreTimeout", o.StoreTimeout, "1ms to 10s")
	}
	return o.Accuracy.validate()
}

func invalid(field string, value any, allowed string) error {
	return fmt.Errorf("%w: %s: %v, allowed %s", ErrInvalidOption, field, value, allowed)
}

// member returns the name under which a node registers: its ID and random bits,
// so that two nodes of one ID do not pass for one.
func (o *Options) member() string {
	bits := make([]byte, 8)
	rand.Read(bits) // never fails
	if o.NodeID == "" {
		return hex.EncodeToString(bits)
	}
	return o.NodeID + "-" + hex.EncodeToString(bits)
}
