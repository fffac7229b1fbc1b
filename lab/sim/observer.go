package sim

import (
	"context"
	"errors"
	"net"

	"github.com/redis/go-redis/v9"
)

// observer sees what a client sends over its own connections, and what it is told.
type observer struct{ wire *wire }

// DialHook is part of redis.Hook.
func (o *observer) DialHook(next redis.DialHook) redis.DialHook { return next }

// ProcessHook is part of redis.Hook.
func (o *observer) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		replied := o.observe([]redis.Cmder{cmd})
		err := next(ctx, cmd)
		cmd.SetErr(err) // as the client does next
		replied()
		return err
	}
}

// ProcessPipelineHook is part of redis.Hook.
func (o *observer) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, cmds []redis.Cmder) error {
		replied := o.observe(cmds)
		err := next(ctx, cmds)
		replied()
		return err
	}
}

// observe notes a call; what it returns notes the reply.
func (o *observer) observe(cmds []redis.Cmder) (replied func()) {
	var carriers []redis.Cmder
	for _, cmd := range cmds {
		if isSettle(cmd) {
			carriers = append(carriers, cmd)
		}
	}
	settles := settlesOf(carriers)
	o.wire.sent(settles, len(cmds))
	return func() {
		for i, cmd := range carriers {
			readReply(settles[i], cmd.(interface{ Val() any }).Val(), cmd.Err())
			o.wire.executed(settles[i])
			o.wire.replied(settles[i])
		}
	}
}

// surelyNotRun says whether an error proves that the store did not execute a
// command: there was no connection, or it said so itself.
func surelyNotRun(err error) bool {
	var op *net.OpError
	var reply redis.Error
	switch {
	case errors.As(err, &op) && op.Op == "dial",
		errors.As(err, &reply),
		errors.Is(err, redis.ErrPoolTimeout), errors.Is(err, redis.ErrClosed):
		return true
	}
	return false
}
