package service

import (
	"context"
	"strconv"
	"sync"
	"sync/atomic"
)

// subject is what is measured: a fleet of limiters.
type subject interface {
	// allow asks a node. It may be called from any goroutine.
	allow(ctx context.Context, node int, key string) (answer, error)
	paths() []string // names of answer.path
	over() float64   // what is permitted on top of the limit
	books() books    // what the fleet has done so far
	stop()
}

// books are what a fleet says of itself; what it does not count is 0.
type books struct {
	operations uint64 // accounts settled in Redis
	calls      uint64 // to Redis that carried them
	waited     uint64 // requests that waited for Redis
	keys       int    // remembered by all nodes together
	downs      uint64 // how often a node gave Redis up
}

func (b books) since(a books) books {
	b.operations -= a.operations
	b.calls -= a.calls
	b.waited -= a.waited
	b.downs -= a.downs
	return b
}

// empty is the limiter that returns at once.
type empty struct{}

//go:noinline
func (empty) allow(context.Context, int, string) (answer, error) {
	return answer{allowed: true}, nil
}

func (empty) paths() []string { return []string{"empty"} }
func (empty) over() float64   { return 0 }
func (empty) books() books    { return books{} }
func (empty) stop()           {}

// asker calls a subject for the crew and writes the answers down.
type asker struct {
	ctx     context.Context
	subject subject
	now     func() int64

	errors atomic.Int64
	once   sync.Once
	failed error // the first of them; read after the run
}

// ask makes the call of one request. The key is a string of its own, as a server makes
// one of what it has read, before the call begins.
func (a *asker) ask(r *request) {
	key := "user:" + strconv.Itoa(int(r.key))
	s := a.subject
	if r.node == witness {
		s = empty{}
	}
	began := a.now()
	got, err := s.allow(a.ctx, int(r.node), key)
	r.began, r.took, r.answer = began, a.now()-began, got
	if err != nil {
		a.errors.Add(1)
		a.once.Do(func() { a.failed = err })
	}
}
