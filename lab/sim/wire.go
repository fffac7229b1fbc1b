package sim

import (
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/hybridlimit/hybrid/slice"
)

// meter counts what the fleet costs the store.
type meter struct {
	asked      atomic.Int64 // requests
	operations atomic.Int64 // accounts that the store settled, or may have
	commands   atomic.Int64 // commands that carried them
	roundTrips atomic.Int64 // calls that carried the commands
	other      atomic.Int64 // commands that carried none: heartbeats, marks
	polls      atomic.Int64 // calls that carried none of the former
	sent       atomic.Int64 // bytes
	received   atomic.Int64 // bytes
	blocked    atomic.Int64
	others     atomic.Int64 // keys of the limiter that only denies

	lenient  atomic.Bool // a node left in order, and settled more than requests had paid for
	exceeded atomic.Bool // there were more operations than requests at some time

	strata []strokes // operations by stratum of the keys
	keys   *population
}

// strokes counts operations by reason.
type strokes [reasons]atomic.Int64

func (s *strokes) load() (b ByReason) {
	for i := range s {
		b[i] = s[i].Load()
	}
	return b
}

func (m *meter) cost() Cost {
	return Cost{
		Operations: m.operations.Load(),
		Commands:   m.commands.Load(),
		RoundTrips: m.roundTrips.Load(),
		Other:      m.other.Load(),
		Blocked:    m.blocked.Load(),
		Polls:      m.polls.Load(),
		Sent:       m.sent.Load(),
		Received:   m.received.Load(),
	}
}

// wire is what can be seen of one node between its client and the store.
type wire struct {
	meter *meter
	dead  atomic.Bool // its node has crashed: nothing that it sends reaches anybody

	mu       sync.Mutex
	verdicts map[string]verdict // by key: the last settle that carried requests
	tokens   map[string]int64   // by key: what is in the slice; nil: nobody asks

	open    map[string][]*owed        // by key: what the store may not know yet; nil: nothing, ever
	cargo   map[*slice.Settle][]*owed // what settles carry of it that have not arrived
	arrived func([]*owed)             // is told what has
	fill    int64                     // ns, in which an account fills
}

// verdict is when the store judged requests, and how many of their callers have
// not been told yet.
type verdict struct {
	at     int64 // ns
	unread int64
}

func newWire(m *meter, tokens bool, fill time.Duration) *wire {
	w := &wire{meter: m, verdicts: map[string]verdict{}, fill: int64(fill)}
	if tokens {
		w.tokens = map[string]int64{}
	}
	return w
}

// sent notes a call on its way. Of each settle, the slice is down to what is held.
func (w *wire) sent(settles [][]*slice.Settle, commands int) {
	carrying := int64(len(settles))
	w.meter.commands.Add(carrying)
	w.meter.other.Add(int64(commands) - carrying)
	if carrying > 0 {
		w.meter.roundTrips.Add(1)
	} else {
		w.meter.polls.Add(1)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.tokens == nil && w.open == nil {
		return
	}
	for _, part := range settles {
		for _, st := range part {
			if !ofKey(st) {
				continue
			}
			if w.tokens != nil && st.Usage.Tag.Epoch > 0 {
				w.tokens[keyOf(st.Account)] = st.Usage.Held
			}
			w.load(st)
		}
	}
}

// executed counts settles that the store executed, or may have.
func (w *wire) executed(settles []*slice.Settle) {
	if w.dead.Load() {
		return
	}
	for _, st := range settles {
		if st.Outcome == slice.NotRun || !ofKey(st) {
			continue
		}
		if st.Outcome == slice.Ran {
			if all := w.unload(st); len(all) > 0 {
				w.arrived(all)
			}
		}
		if w.meter.operations.Add(1) > w.meter.asked.Load() && !w.meter.lenient.Load() {
			w.meter.exceeded.Store(true)
		}
		stratum := w.meter.keys.stratumOf(numberOf(keyOf(st.Account)))
		w.meter.strata[stratum][reasonOf(st)].Add(1)
	}
}

// replied notes what the store said.
func (w *wire) replied(settles []*slice.Settle) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, st := range settles {
		switch {
		case !ofKey(st):
		case st.Outcome == slice.Ran:
			w.heard(st)
		case st.Outcome == slice.NotRun:
			w.bringBack(st)
		}
	}
}

// heard notes one reply. The caller holds mu.
func (w *wire) heard(st *slice.Settle) {
	if len(st.Usage.Needs) > 0 {
		v := verdict{at: st.Grant.Clock * 1000}
		for _, need := range st.Usage.Needs {
			v.unread += need.Count
		}
		w.verdicts[keyOf(st.Account)] = v
	}
	if w.tokens == nil {
		return
	}
	key := keyOf(st.Account)
	if st.Grant.Dropped {
		w.tokens[key] = 0
	}
	w.tokens[key] += st.Grant.Granted
}

// judged is when the store judged a request of a key whose answer has just come.
func (w *wire) judged(key string) (at int64, known bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	v, ok := w.verdicts[key]
	if !ok {
		return 0, false
	}
	if v.unread--; v.unread == 0 {
		delete(w.verdicts, key)
	} else {
		w.verdicts[key] = v
	}
	return v.at, true
}

// took notes tokens that the node admitted from a slice.
func (w *wire) took(key string, n int64) {
	if w.tokens == nil {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.tokens[key] -= n
}

// holds is what the node has in its slice.
func (w *wire) holds(key string) int64 {
	w.mu.Lock()
	defer w.mu.Unlock()
	return max(w.tokens[key], 0)
}

// Accounts are called "hybrid:{}a1:3:api:KEY"; registries "hybrid:{}m1:api".
const (
	limiterName   = "api"
	everyAccount  = "hybrid:{}a1:"
	accountPrefix = everyAccount + "3:" + limiterName + ":"
	fleetPrefix   = "hybrid:{}m1:"
	probePrefix   = "hybrid:{}p1:" // of accounts that only tell whether the store settles
	marksKey      = "hybrid:{}r1"
)

func keyOf(account string) string { return account[len(accountPrefix):] }

// ofKey says whether an account is one of the keys; else it is of the limiter that only denies.
func ofKey(st *slice.Settle) bool { return strings.HasPrefix(st.Account, accountPrefix) }

// settlesOf decodes the calls of the settle script among commands.
func settlesOf(cmds []redis.Cmder) (settles [][]*slice.Settle) {
	for _, cmd := range cmds {
		if isSettle(cmd) {
			settles = append(settles, decode(cmd.Args()))
		}
	}
	return settles
}
