package hybridgrpc

import (
	"context"
	"time"

	"google.golang.org/grpc/codes"

	"github.com/hybridlimit/hybrid"
)

// server is what the calls of an interceptor share. Nothing in it changes.
type server struct {
	options  ServerOptions // as given; what has a default is below
	limits   []limit       // at least one; those after the first are ServerOptions.More
	methods  methods
	noKey    codes.Code
	pushback time.Duration
}

// limit is one of the limits that a call must pass.
type limit struct {
	limiter   *hybrid.Limiter
	key       Key
	sharesKey bool                              // key is that of the first limit
	cost      func(context.Context, Call) int64 // nil: 1
	name      string
	quoted    string // name as a structured field has it
}

func (l *limit) costOf(ctx context.Context, call Call) int64 {
	if l.cost == nil {
		return 1
	}
	return l.cost(ctx, call)
}

// verdict is the answer to a call, and the limit that it is about.
type verdict struct {
	limit   *limit // nil: the call was free
	key     string
	result  hybrid.Result
	message bool // of a message on a stream, not of its opening
}

// passes reports whether a call is not ours to decide.
func (s *server) passes(ctx context.Context, call Call) bool {
	return !s.methods.has(call.Method) || s.options.Skip != nil && s.options.Skip(ctx, call)
}

// noKeys makes room for the key of each limit, none of which is known yet.
func (s *server) noKeys(room []string) []string {
	if len(s.limits) <= len(room) {
		return room[:len(s.limits)]
	}
	return make([]string, len(s.limits))
}

// decide decides a call. keys are those of the limits as far as they are known; the
// others are found when they are needed, and kept there.
func (s *server) decide(ctx context.Context, call Call, keys []string) (verdict, error) {
	if len(s.limits) > 1 {
		return s.decideAll(ctx, call, keys)
	}
	l := &s.limits[0]
	cost := l.costOf(ctx, call)
	if cost == 0 {
		return free, nil // AllowN would peek, which asks Redis
	}
	key, err := s.keyOf(ctx, call, keys, 0)
	if err != nil {
		return verdict{}, err
	}
	res, err := l.limiter.AllowN(ctx, key, cost)
	return verdict{limit: l, key: key, result: res}, err
}

// free is the verdict of a call that costs nothing.
var free = verdict{result: hybrid.Result{Allowed: true}}

// decideAll decides a call that several limits must admit. What is free is left out:
// in a hybrid.Check a cost of 0 would mean 1.
func (s *server) decideAll(ctx context.Context, call Call, keys []string) (verdict, error) {
	var roomC [4]hybrid.Check
	var roomL [4]*limit
	checks, limits := roomC[:0], roomL[:0]
	for i := range s.limits {
		l := &s.limits[i]
		cost := l.costOf(ctx, call)
		if cost == 0 {
			continue
		}
		key, err := s.keyOf(ctx, call, keys, i)
		if err != nil {
			return verdict{}, err
		}
		checks = append(checks, hybrid.Check{Limiter: l.limiter, Key: key, N: cost})
		limits = append(limits, l)
	}
	if len(checks) == 0 {
		return free, nil
	}
	res, err := s.limits[0].limiter.Node().AllowAll(ctx, checks...)
	if err != nil {
		return verdict{}, err
	}
	return verdict{limit: limits[res.Check], key: checks[res.Check].Key, result: res}, nil
}

// keyOf is the key of the limit with index i.
func (s *server) keyOf(ctx context.Context, call Call, keys []string, i int) (string, error) {
	if s.limits[i].sharesKey {
		i = 0
	}
	if keys[i] == "" {
		var err error
		if keys[i], err = s.limits[i].key.of(ctx, call); err != nil {
			return "", err
		}
	}
	return keys[i], nil
}
