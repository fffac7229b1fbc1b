package sim

import (
	"context"
	"io"
	"net"
	"os"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/hybridlimit/hybrid/slice"
)

// loading is what a Redis says that has just started.
const loading = "LOADING Redis is loading the dataset in memory"

// memory is a node's client of the store in plain Go: a hook that answers every
// command itself, after a round trip on the node's link. All of the library runs
// as it is, and so does the client, but for its connections.
type memory struct {
	store *memoryStore
	link  *link
	wire  *wire
}

// DialHook is part of redis.Hook. Nothing ever dials.
func (m *memory) DialHook(next redis.DialHook) redis.DialHook { return next }

// ProcessHook is part of redis.Hook.
func (m *memory) ProcessHook(redis.ProcessHook) redis.ProcessHook {
	return func(_ context.Context, cmd redis.Cmder) error {
		return m.call([]redis.Cmder{cmd})
	}
}

// ProcessPipelineHook is part of redis.Hook.
func (m *memory) ProcessPipelineHook(redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(_ context.Context, cmds []redis.Cmder) error { return m.call(cmds) }
}

// readTimeout is how long the client waits for a reply, by default.
const readTimeout = 3 * time.Second

var (
	errTimeout error = &net.OpError{Op: "read", Net: "tcp", Err: os.ErrDeadlineExceeded}
	errBroken  error = &net.OpError{Op: "read", Net: "tcp", Err: io.EOF}
)

// storeError is an error that the store answered with.
type storeError string

func (e storeError) Error() string { return string(e) }

// RedisError is part of redis.Error.
func (e storeError) RedisError() {}

// trip is one call on its way.
type trip struct {
	*memory
	cmds    []redis.Cmder
	settles [][]*slice.Settle // of each command of the script
	epoch   int               // of the connection
	giveUp  time.Time
}

// call makes one round trip.
func (m *memory) call(cmds []redis.Cmder) error {
	m.store.calls.Add(1)
	defer m.store.calls.Done()
	epoch, ok := m.link.connected()
	if !ok {
		return fail(cmds, errRefused)
	}
	t := &trip{memory: m, cmds: cmds, settles: settlesOf(cmds), epoch: epoch}
	t.giveUp = time.Now().Add(readTimeout + t.apart())
	m.wire.sent(t.settles, len(cmds))
	m.link.meter.sent.Add(bytesOfCalls(cmds))
	replies, err := t.there()
	if err != nil {
		return fail(cmds, err)
	}
	if err := t.back(); err != nil {
		return fail(cmds, err)
	}
	for _, part := range t.settles {
		m.wire.replied(part)
	}
	return t.tell(replies)
}

func fail(cmds []redis.Cmder, err error) error {
	for _, cmd := range cmds {
		cmd.SetErr(err)
	}
	return err
}

// there takes the call to the store, where it meets its fate. An error means that
// the client hears nothing of it.
func (t *trip) there() (replies []any, err error) {
	at := t.link.due(t.message())
	if at.After(t.giveUp) { // it arrives all the same
		t.store.calls.Go(func() {
			time.Sleep(time.Until(at))
			if t.link.look(t.epoch) == well {
				t.execute()
			}
		})
		return nil, t.silence()
	}
	time.Sleep(time.Until(at))
	if err := t.passes(); err != nil {
		return nil, err
	}
	switch t.link.meet(len(t.settles) > 0) {
	case refused:
		return t.refuse(), nil
	case cutBefore:
		return nil, errBroken
	case cutAfter:
		t.execute()
		return nil, errBroken
	case swallowed:
		t.execute()
		return nil, t.silence()
	}
	return t.execute(), nil
}

// back lets the reply travel.
func (t *trip) back() error {
	at := t.link.due(t.message() + 1)
	if at.After(t.giveUp) {
		return t.silence()
	}
	time.Sleep(time.Until(at))
	return t.passes()
}

// passes is nil if the message that has just arrived did arrive.
func (t *trip) passes() error {
	switch t.link.look(t.epoch) {
	case broken:
		return errBroken
	case gone:
		return t.silence()
	}
	return nil
}

// silence waits until the client gives up.
func (t *trip) silence() error {
	time.Sleep(time.Until(t.giveUp))
	return errTimeout
}

// apart is less than a microsecond, by which callers of one moment give up one after
// the other: it is not left to chance which is first.
func (t *trip) apart() time.Duration {
	return time.Duration(mix(t.link.salt^mix(t.message())) % 997)
}

// message tells calls apart, the same way in every run. Which accounts share a
// call that a node sends at some moment may be left to chance, so it says nothing
// of them.
func (t *trip) message() uint64 {
	if len(t.settles) > 0 {
		return kindOfSettle
	}
	return sumOf([]byte(t.cmds[0].Name()))
}

func (t *trip) refuse() []any {
	replies := make([]any, len(t.cmds))
	for i := range replies {
		replies[i] = storeError(loading)
	}
	for _, part := range t.settles {
		for _, st := range part {
			st.Outcome = slice.NotRun
		}
	}
	return replies
}

// execute lets the store execute the commands.
func (t *trip) execute() []any {
	replies, next := make([]any, len(t.cmds)), 0
	for i, cmd := range t.cmds {
		if !isSettle(cmd) {
			replies[i] = executeOther(t.store.ledger, cmd)
			continue
		}
		part := t.settles[next]
		next++
		t.store.ledger.Settle(context.Background(), part)
		t.wire.executed(part)
		replies[i] = encode(part)
	}
	for _, reply := range replies {
		t.link.meter.received.Add(bytesOfReply(reply))
	}
	return replies
}

// tell gives the client the replies.
func (t *trip) tell(replies []any) (first error) {
	for i, cmd := range t.cmds {
		if err, failed := replies[i].(storeError); failed {
			cmd.SetErr(err)
			if first == nil {
				first = err
			}
			continue
		}
		setVal(cmd, replies[i])
	}
	return first
}

func setVal(cmd redis.Cmder, v any) {
	switch c := cmd.(type) {
	case interface{ SetVal(any) }:
		c.SetVal(v)
	case interface{ SetVal(int64) }:
		c.SetVal(v.(int64))
	case interface{ SetVal(bool) }:
		c.SetVal(v.(int64) == 1)
	case interface{ SetVal([]redis.Z) }:
		c.SetVal(v.([]redis.Z))
	}
}
