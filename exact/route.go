package exact

import (
	"context"
	"errors"
	"sync"

	"github.com/redis/go-redis/v9"
)

// redirects is how many redirected calls of a cluster are in flight at once.
const redirects = 16

// run executes the calls, each on the server that owns its first key.
// Every call gets a reply or an error.
func (s *Store) run(ctx context.Context, calls []*call) {
	if err := ctx.Err(); err != nil {
		for _, c := range calls {
			c.err = notSent{err}
		}
		return
	}
	switch rdb := s.rdb.(type) {
	case *redis.Client:
		runOn(ctx, rdb, calls)
	case *redis.Ring:
		runSharded(ctx, calls, func(key string) (*redis.Client, error) { return rdb.GetShardClientForKey(key) })
	case *redis.ClusterClient:
		runSharded(ctx, calls, func(key string) (*redis.Client, error) { return rdb.MasterForKey(ctx, key) })
		redirect(ctx, rdb, calls)
	default: // somebody's wrapper: what its pipeline would do is unknown
		for _, c := range calls {
			sendLoaded(ctx, s.rdb, c)
		}
	}
}

// runSharded executes the calls on the clients that own their first keys, in parallel.
func runSharded(ctx context.Context, calls []*call, owner func(key string) (*redis.Client, error)) {
	byOwner := make(map[*redis.Client][]*call)
	for _, c := range calls {
		client, err := owner(c.key())
		if err != nil {
			c.err = notSent{err}
			continue
		}
		byOwner[client] = append(byOwner[client], c)
	}
	var wg sync.WaitGroup
	for client, calls := range byOwner {
		wg.Go(func() { runOn(ctx, client, calls) })
	}
	wg.Wait()
}

// redirect follows MOVED and ASK: such a call has not run, and a cluster
// client's Process knows the way. Any failure to reach an owner asks the
// client to look at the cluster anew, as a failover may have happened.
func redirect(ctx context.Context, rdb *redis.ClusterClient, calls []*call) {
	var wg sync.WaitGroup
	slots := make(chan struct{}, redirects)
	stale := false
	for _, c := range calls {
		if !redirected(c.err) {
			stale = stale || c.err != nil && !isReply(c.err)
			continue
		}
		slots <- struct{}{}
		wg.Go(func() {
			sendLoaded(ctx, rdb, c)
			<-slots
		})
	}
	wg.Wait()
	if stale {
		rdb.ReloadState(ctx)
	}
}

func redirected(err error) bool {
	if err == nil {
		return false
	}
	_, moved := redis.IsMovedError(err)
	_, ask := redis.IsAskError(err)
	return moved || ask
}

// isReply reports whether a server answered, with an error.
func isReply(err error) bool {
	var reply redis.Error
	return errors.As(err, &reply)
}

// notSent wraps an error that happened before a command was given to a client.
type notSent struct{ error }

func (e notSent) Unwrap() error { return e.error }

func isNotSent(err error) bool {
	var n notSent
	return errors.As(err, &n)
}
