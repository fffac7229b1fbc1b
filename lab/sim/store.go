package sim

import (
	"context"
	"errors"
	"net"
	"sync"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/logging"
	"github.com/redis/go-redis/v9/maintnotifications"

	"github.com/hybridlimit/hybrid/exact"
	"github.com/hybridlimit/hybrid/internal/ledger"
	"github.com/hybridlimit/hybrid/slice"
)

// The client's own log of broken connections is what experiments ask for.
func init() { logging.Disable() }

// Store is what nodes settle with.
type Store uint8

const (
	Memory Store = iota // the account in plain Go behind the client's hooks: fast enough for millions of requests
	Mini                // an embedded Redis, by the client's own connections and the script itself
)

// String is what Set reads.
func (s *Store) String() string {
	if *s == Mini {
		return "mini"
	}
	return "memory"
}

// Set reads "memory" or "mini".
func (s *Store) Set(text string) error {
	switch text {
	case "memory":
		*s = Memory
	case "mini":
		*s = Mini
	default:
		return errors.New("allowed memory or mini")
	}
	return nil
}

// backend is a store of an experiment.
type backend interface {
	client(*link, *wire) *redis.Client
	state(key string, rule slice.Rule) (slice.Grant, error)
	lose()          // all data
	forgetScripts() // as a restart does
	snapshot() (restore func())
	close()
}

func newBackend(s Store) backend {
	if s == Mini {
		return newMini()
	}
	return &memoryStore{ledger: ledger.NewStore()}
}

// memoryStore is the store in plain Go.
type memoryStore struct {
	ledger *ledger.Store
	calls  sync.WaitGroup // under way
}

func (m *memoryStore) client(l *link, w *wire) *redis.Client {
	rdb := newClient(nil)
	rdb.AddHook(&memory{store: m, link: l, wire: w})
	return rdb
}

func (m *memoryStore) state(key string, rule slice.Rule) (slice.Grant, error) {
	st := &slice.Settle{Account: accountPrefix + key, Rule: rule}
	m.ledger.Settle(context.Background(), []*slice.Settle{st})
	return st.Grant, st.Err
}

func (m *memoryStore) lose() { m.ledger.Lose() }

func (m *memoryStore) forgetScripts() {} // it knows none

func (m *memoryStore) snapshot() (restore func()) {
	old := m.ledger.Snapshot()
	return func() { m.ledger.Restore(old) }
}

func (m *memoryStore) close() { m.calls.Wait() }

// newClient makes a client of a store that is dialled so. An address that is no
// name needs no look-up, which would leave the bubble. Asking for maintenance
// notifications holds a mutex while a connection is made, and virtual time
// stands still while somebody waits for a mutex.
func newClient(dial func(context.Context, string, string) (net.Conn, error)) *redis.Client {
	return redis.NewClient(&redis.Options{
		Addr:                     "127.0.0.1:6379",
		Dialer:                   dial,
		MaintNotificationsConfig: &maintnotifications.Config{Mode: maintnotifications.ModeDisabled},
	})
}

// mini is an embedded Redis.
type mini struct {
	server *miniredis.Miniredis
	admin  *redis.Client // without delays or faults
	direct *exact.Store  // of admin
}

func newMini() *mini {
	m := &mini{server: miniredis.NewMiniRedis()}
	m.server.ClockTTL(true)
	m.admin = newClient(func(context.Context, string, string) (net.Conn, error) { return m.server.Dial() })
	m.direct, _ = exact.New(m.admin, nil) // the defaults are valid
	return m
}

func (m *mini) client(l *link, w *wire) *redis.Client {
	rdb := newClient(l.dialer(m.server.Dial))
	rdb.AddHook(&observer{wire: w})
	return rdb
}

func (m *mini) state(key string, rule slice.Rule) (slice.Grant, error) {
	st := &slice.Settle{Account: accountPrefix + key, Rule: rule}
	m.direct.Settle(context.Background(), []*slice.Settle{st})
	return st.Grant, st.Err
}

func (m *mini) lose() { m.server.FlushAll() }

func (m *mini) forgetScripts() { m.admin.ScriptFlush(context.Background()) }

func (m *mini) snapshot() (restore func()) {
	db, now := m.server.DB(0), time.Now()
	type text struct {
		value string
		until time.Time
	}
	texts, sets := map[string]text{}, map[string]map[string]float64{}
	for _, key := range db.Keys() {
		if db.Type(key) == "zset" {
			sets[key], _ = db.SortedSet(key)
			continue
		}
		value, _ := db.Get(key)
		texts[key] = text{value, now.Add(db.TTL(key))}
	}
	return func() {
		m.server.FlushAll()
		for key, t := range texts {
			if left := time.Until(t.until); left > 0 {
				_ = db.Set(key, t.value)
				db.SetTTL(key, left)
			}
		}
		for key, set := range sets {
			for member, score := range set {
				_, _ = db.ZAdd(key, score, member)
			}
			db.SetTTL(key, time.Minute)
		}
	}
}

func (m *mini) close() {
	_ = m.admin.Close()
	time.Sleep(2 * time.Second) // a client that could not dial tries each second, until it sees that it is closed
	m.server.Close()
}
