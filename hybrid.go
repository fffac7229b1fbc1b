package hybrid

import (
	"cmp"
	"context"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/hybridlimit/hybrid/exact"
	"github.com/hybridlimit/hybrid/internal/key"
	"github.com/hybridlimit/hybrid/internal/redisclient"
	"github.com/hybridlimit/hybrid/internal/waiting"
	"github.com/hybridlimit/hybrid/slice"
	"github.com/hybridlimit/hybrid/syncer"
)

// Node is one server's part in limiting: it owns the slices of all its
// Limiters and settles them with Redis. A process needs one Node per Redis. All
// methods may be called from any goroutine.
type Node struct {
	opts     Options
	sync     *syncer.Syncer
	events   *events
	undoing  underway   // calls that may have to give back what they took
	ending   sync.Mutex // one limiter or node at a time waits for them
	limiters sync.Map   // *syncer.Limiter → *Limiter; written by Limiter and Limiter.Close
}

// New makes a Node on a Redis client of any kind (single, Cluster, Ring,
// Sentinel). It contacts Redis in the background only, so it works while Redis
// is down. Options are copied; nil means all defaults. The client stays the
// caller's: the Node never closes it.
//
// Settings of the client under which the library cannot do what it promises are
// logged, once each: see docs/operations.md.
//
// It fails with ErrInvalidOption.
func New(rdb redis.UniversalClient, opts *Options) (*Node, error) {
	full, err := opts.withDefaults()
	if err != nil {
		return nil, err
	}
	if isNil(rdb) {
		return nil, invalid("rdb", "nil", "a Redis client")
	}
	client, known, made := redisclient.Of(rdb)
	if !made {
		return nil, invalid("rdb", fmt.Sprintf("a %T without options", rdb), "a client made by its constructor")
	}
	store, err := exact.New(rdb, &exact.Options{Prefix: full.Prefix})
	if err != nil {
		return nil, err
	}
	n := newNode(store, full)
	if known {
		client.Warn(n.opts.Logger, full.StoreTimeout)
	}
	return n, nil
}

// isNil sees a nil pointer of a concrete client too, which would crash later.
func isNil(rdb redis.UniversalClient) bool {
	if rdb == nil {
		return true
	}
	v := reflect.ValueOf(rdb)
	return v.Kind() == reflect.Pointer && v.IsNil()
}

func newNode(store syncer.Store, opts Options) *Node {
	e := newEvents(&opts)
	opts.Logger = e.logger // the user's handler is nowhere in the way
	n := &Node{opts: opts, events: e}
	n.sync = syncer.New(syncer.Config{
		Store:        store,
		SyncInterval: opts.SyncInterval,
		StoreTimeout: opts.StoreTimeout,
		Member:       opts.member(),
		Servers:      opts.Servers,
		MaxKeys:      opts.MaxKeys,
		Logger:       opts.Logger,
		Changed:      e.storeChanged,
		Failed:       e.failures.Add,
		Unregistered: e.unregistered,
		Poisoned:     e.accountPoisoned,
	})
	return n
}

// Limiter makes a limiter on this node. Nodes that make one of the same name
// under the same Prefix share its limits. The name is 1 to 256 bytes.
//
// It fails with ErrInvalidLimit, ErrInvalidOption, ErrInvalidAccuracy,
// ErrDuplicateLimiter (the node has one of that name that is not closed) or
// ErrClosed.
func (n *Node) Limiter(name string, l Limit, opts *LimiterOptions) (*Limiter, error) {
	var o LimiterOptions
	if opts != nil {
		o = *opts
	}
	if name == "" || len(name) > longestName {
		return nil, invalid("name", fmt.Sprintf("%d bytes", len(name)), "1 to 256 bytes")
	}
	if err := l.Validate(); err != nil {
		return nil, err
	}
	if err := o.validate(); err != nil {
		return nil, err
	}
	lim := &Limiter{node: n, opts: o, dead: &n.sync.Dead, waits: waiting.New(cmp.Or(o.MaxWaiters, 1<<14))}
	lim.limit.Store(&l)
	cfg := syncer.LimiterConfig{Name: name, Plan: lim.plan(l), Policy: o.OnFailure, Timeout: o.StoreTimeout, Changed: lim.waits.Wake}
	if o.LimitFor != nil {
		lim.tiers = newTiers(lim)
		cfg.PlanFor = lim.tiers.planFor
	}
	core, fresh, err := n.sync.Add(cfg)
	switch {
	case err != nil:
		return nil, err
	case !fresh:
		return nil, fmt.Errorf("%w: %q", ErrDuplicateLimiter, name)
	}
	lim.core = core
	n.limiters.Store(core, lim)
	return lim, nil
}

// Limiters returns the limiters of the node that are open, by name: none once the node
// is closed.
func (n *Node) Limiters() []*Limiter {
	var open []*Limiter
	for _, core := range n.sync.Limiters() {
		if l, ok := n.limiters.Load(core); ok && !core.Closed() { // one that is just being made is not there yet
			open = append(open, l.(*Limiter))
		}
	}
	slices.SortFunc(open, func(a, b *Limiter) int { return strings.Compare(a.Name(), b.Name()) })
	return open
}

// Flush settles with Redis now what this node has used, and returns when Redis
// has answered or ctx ends. Slices stay on the node. It takes one operation per
// key that is in touch with Redis, whether or not requests have paid for it.
//
// It fails with ErrClosed, ctx.Err(), or ErrUnsettled if Redis did not take all of
// it: what it did not take is settled later or lapses.
func (n *Node) Flush(ctx context.Context) error { return n.sync.Flush(ctx) }

// Shutdown returns all slices to Redis, leaves the fleet and stops the node. It
// waits for that until ctx ends; what could not be returned lapses within two
// minutes. Calls under way get their answers, later ones ErrClosed. A second
// Shutdown or Close does nothing.
//
// It fails with ctx.Err(), with ErrUnsettled if Redis did not take all back, or with
// what kept it from taking the node out of the fleets, which it does itself after
// five seconds; the node is closed in any case.
func (n *Node) Shutdown(ctx context.Context) error {
	if !n.sync.Begin() {
		return nil
	}
	defer n.events.stop()
	return n.sync.Shutdown(ctx, n.undone)
}

// undone waits for each AllowAll under way to undo what it took, StoreTimeout at most.
func (n *Node) undone() {
	n.ending.Lock()
	defer n.ending.Unlock()
	n.undoing.wait()
}

// closeTimeout bounds Close.
const closeTimeout = time.Second

// Close is Shutdown within one second, with the same errors.
func (n *Node) Close() error {
	ctx, cancel := context.WithTimeout(slice.Background, closeTimeout)
	defer cancel()
	return n.Shutdown(ctx)
}

// Limiter limits keys: API keys, users, addresses. All methods may be called
// from any goroutine. Keys are any bytes up to 64 KiB.
type Limiter struct {
	// Read by every request.
	core *syncer.Limiter
	dead *slice.Watermark

	node  *Node
	opts  LimiterOptions
	limit atomic.Pointer[Limit] // the limiter's own; written by SetLimit
	tiers *tiers                // nil without LimitFor
	waits *waiting.Lines

	setting sync.Mutex // one SetLimit at a time: the limit and the core's plan are one
}

// Name returns the limiter's name.
func (l *Limiter) Name() string { return l.core.Name() }

// Node returns the node that the limiter was made on.
func (l *Limiter) Node() *Node { return l.node }

// Accuracy returns the limiter's accuracy.
func (l *Limiter) Accuracy() Accuracy { return l.opts.Accuracy }

// OnFailure returns what the limiter answers while Redis does not.
func (l *Limiter) OnFailure() FailurePolicy { return l.opts.OnFailure }

// Shadow reports whether the limiter decides and counts, but always allows.
func (l *Limiter) Shadow() bool { return l.opts.Shadow }

// Limit returns the limit of a key as it would be judged now.
func (l *Limiter) Limit(key string) Limit {
	if l.tiers != nil {
		if own, ok := l.tiers.limitFor(key); ok {
			return own
		}
	}
	return l.OwnLimit()
}

// OwnLimit returns the limiter's own limit: that of keys without one from LimitFor.
func (l *Limiter) OwnLimit() Limit { return *l.limit.Load() }

// SetLimit replaces the limiter's limit on this node, under load: other nodes
// keep theirs until they are told. What was used counts on, and what has been earned
// back since a key's last settle is earned at the new rate; denials from memory
// are forgotten and slices made for the old limit go back. Keys with a limit of
// their own (LimitFor) keep it.
//
// It fails with ErrInvalidLimit or ErrClosed, and changes nothing then.
func (l *Limiter) SetLimit(l2 Limit) error {
	if err := l2.Validate(); err != nil {
		return err
	}
	if l.core.Closed() {
		return ErrClosed
	}
	l.setting.Lock()
	defer l.setting.Unlock()
	l.limit.Store(&l2)
	l.core.SetPlan(l.plan(l2))
	l.waits.Wake()
	return nil
}

// Close returns the limiter's slices to Redis and forgets its keys, within one
// second. The name may be used again. Later calls give ErrClosed, and a second Close
// does nothing.
//
// It fails like Node.Close: with context.DeadlineExceeded after the second, with
// ErrUnsettled if Redis did not take all back, or with what kept it from taking the
// node out of the limiter's fleet; the limiter is closed in any case.
func (l *Limiter) Close() error {
	ctx, cancel := context.WithTimeout(slice.Background, closeTimeout)
	defer cancel()
	l.node.limiters.Delete(l.core)
	return l.core.Close(ctx, l.node.undone)
}

func (l *Limiter) plan(limit Limit) *syncer.Plan {
	switch {
	case limit.Count() == 0:
		return syncer.NewPlan(slice.Rule{Burst: limit.Burst()}, syncer.Dial{})
	case limit == Unlimited():
		return key.UnlimitedPlan(limit.Burst())
	}
	return syncer.NewPlan(limit.Rule(), l.opts.Accuracy.dial())
}
