package exact

import (
	"context"
	"crypto/sha1"
	_ "embed"
	"encoding/hex"
	"errors"
	"fmt"

	"github.com/redis/go-redis/v9"
)

//go:embed lua/settle.lua
var settleSource string

//go:embed lua/heartbeat.lua
var heartbeatSource string

var (
	settleScript    = newScript(settleSource)
	heartbeatScript = newScript(heartbeatSource)
)

// script is a Lua source and the name that Redis gives to it.
type script struct {
	source, sha string
}

func newScript(source string) *script {
	sum := sha1.Sum([]byte(source))
	return &script{source: source, sha: hex.EncodeToString(sum[:])}
}

// onceCmd is a command that a client sends at most once. Clients of go-redis
// retry commands that timed out, and so may run them again; NoRetry is the
// interface's word against that. Redirections are still followed: a
// redirected command has not run.
type onceCmd struct {
	*redis.Cmd
}

func (c onceCmd) NoRetry() bool      { return true }
func (c onceCmd) Clone() redis.Cmder { return onceCmd{c.Cmd.Clone().(*redis.Cmd)} }

// call is one execution of a script.
type call struct {
	script *script
	keys   int   // how many of args are keys; the first one decides where it runs
	args   []any // "evalsha", sha, keys, keys..., argv...
	reply  any
	err    error
}

// newCall has room for a call with the given numbers of keys and arguments.
func newCall(s *script, keys, argv int) *call {
	c := &call{script: s, keys: keys, args: make([]any, 3, 3+keys+argv)}
	c.args[0], c.args[1], c.args[2] = "evalsha", s.sha, keys
	return c
}

func (c *call) key() string { return c.args[3].(string) }

// loaded reports whether the server knew the script. If it did not, the call
// has not run, and is turned into one that brings the source along.
func (c *call) loaded() bool {
	if !redis.HasErrorPrefix(c.err, "NOSCRIPT") {
		return true
	}
	c.args[0], c.args[1] = "eval", c.script.source
	return false
}

// runOn executes the calls on one client, in one round trip, and a second
// time those that met a server without the script. A pipeline is used only on
// a plain client: through a cluster client's pipeline, a command that was
// redirected and then lost keeps the error of the redirection, and would
// be taken for one that did not run.
func runOn(ctx context.Context, client *redis.Client, calls []*call) {
	sendPipelined(ctx, client, calls)
	var again []*call
	for _, c := range calls {
		if !c.loaded() {
			again = append(again, c)
		}
	}
	sendPipelined(ctx, client, again)
}

func sendPipelined(ctx context.Context, client *redis.Client, calls []*call) {
	switch len(calls) {
	case 0:
		return
	case 1:
		send(ctx, client, calls[0])
		return
	}
	pipe := client.Pipeline()
	cmds := make([]onceCmd, len(calls))
	for i, c := range calls {
		cmds[i] = onceCmd{redis.NewCmd(ctx, c.args...)}
		_ = pipe.Process(ctx, cmds[i]) // queues only
	}
	panicked := guard(func() error { _, _ = pipe.Exec(ctx); return nil }) // each command has its own error
	for i, c := range calls {
		c.reply, c.err = cmds[i].Result()
		if panicked != nil {
			c.reply, c.err = nil, panicked
		}
	}
}

// processor is what all clients have in common.
type processor interface {
	Process(ctx context.Context, cmd redis.Cmder) error
}

func send(ctx context.Context, p processor, c *call) {
	cmd := onceCmd{redis.NewCmd(ctx, c.args...)}
	panicked := guard(func() error { _ = p.Process(ctx, cmd); return nil })
	if c.reply, c.err = cmd.Result(); panicked != nil {
		c.reply, c.err = nil, panicked
	}
}

// ErrHook says that user code in the client (a hook, a Dialer) panicked during a call.
// What the call said may have been executed. The text has the type of the panic's
// value alone, which may hold anything.
var ErrHook = errors.New("hybrid: a hook of the Redis client panicked")

// guard keeps a panic of user code in the client from ending the process: most calls run
// on goroutines of the library, where no caller could recover.
func guard(do func() error) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("%w: %T", ErrHook, p)
		}
	}()
	return do()
}

// sendLoaded is send, and once more if the server did not know the script.
func sendLoaded(ctx context.Context, p processor, c *call) {
	send(ctx, p, c)
	if !c.loaded() {
		send(ctx, p, c)
	}
}
