package store

import (
	"context"

	"github.com/redis/go-redis/v9"
)

// hook sees, and changes, what a client sends.
type hook func(cmd redis.Cmder) error

func (h hook) DialHook(next redis.DialHook) redis.DialHook { return next }

func (h hook) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		if err := h(cmd); err != nil {
			return err
		}
		return next(ctx, cmd)
	}
}

func (h hook) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, cmds []redis.Cmder) error {
		for _, cmd := range cmds {
			if err := h(cmd); err != nil {
				return fail(cmds, err)
			}
		}
		return next(ctx, cmds)
	}
}

func fail(cmds []redis.Cmder, err error) error {
	for _, cmd := range cmds {
		cmd.SetErr(err)
	}
	return err
}

// recorder keeps the source of the script that was sent last.
type recorder struct{ source string }

func (r *recorder) DialHook(next redis.DialHook) redis.DialHook { return next }

func (r *recorder) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return hook(func(cmd redis.Cmder) error {
		if source, ok := argument(cmd, 1).(string); ok && cmd.Name() == "eval" {
			r.source = source
		}
		return nil
	}).ProcessHook(next)
}

func (r *recorder) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return next
}

func argument(cmd redis.Cmder, i int) any {
	if args := cmd.Args(); i < len(args) {
		return args[i]
	}
	return nil
}

// insteadOf has the server run another script, which it knows, on the same keys and
// arguments.
func insteadOf(sha string) hook {
	return func(cmd redis.Cmder) error {
		if cmd.Name() == "evalsha" {
			cmd.Args()[1] = sha
		}
		return nil
	}
}

// apart answers calls for several accounts as a Cluster would, so that the store sends
// them one by one, in a pipeline.
func apart(cmd redis.Cmder) error {
	if keys, ok := argument(cmd, 2).(int); ok && cmd.Name() == "evalsha" && keys > 1 {
		return crossSlot{}
	}
	return nil
}

type crossSlot struct{}

func (crossSlot) Error() string { return "CROSSSLOT Keys in request don't hash to the same slot" }
func (crossSlot) RedisError()   {}
