package ledger

import (
	"context"
	"errors"
	"strconv"
	"sync"
	"time"

	"github.com/hybridlimit/hybrid/slice"
)

var errBadArgument = errors.New("ERR bad argument")

// Store is a store in memory: it does what package exact does with Redis, at
// once and without fail. It is safe for concurrent use, starts no goroutine, and
// an account takes some 120 bytes beside its name. Whoever wants calls to take
// time, to fail or to get lost wraps it; what can happen to the data itself is
// here: see [Store.Lose], [Store.Snapshot] and [Store.Skew].
//
// Its clock is time.Now, which is virtual in a bubble of testing/synctest. As
// in Redis, keys expire by the same clock, in whole milliseconds.
type Store struct {
	mu   sync.Mutex
	skew time.Duration // of the store's clock against time.Now
	data data
}

// data is what a store holds, and loses.
type data struct {
	accounts map[string]entry
	sweepAt  int // as many accounts as are worth looking for expired ones
	fleets   map[string]*registry
	marks    board
}

// entry is an account with the last millisecond that it lives to see.
type entry struct {
	Account
	until int64
}

// fewest is a number of accounts below which nobody looks for expired ones.
const fewest = 1024

// NewStore returns an empty store.
func NewStore() *Store { return &Store{data: newData()} }

func newData() data {
	return data{accounts: map[string]entry{}, sweepAt: fewest, fleets: map[string]*registry{}, marks: newBoard()}
}

// now is the store's clock in µs. The caller holds mu.
func (s *Store) now() int64 { return time.Now().Add(s.skew).UnixMicro() }

// Account names the account of a limiter's key. The length keeps limiter "a",
// key "b:c" apart from limiter "a:b", key "c".
func (s *Store) Account(limiter, key string) string {
	return strconv.Itoa(len(limiter)) + ":" + limiter + ":" + key
}

// Settle executes each settle of the batch, in order and at one moment. Only
// one that is not [Sound] does not run.
func (s *Store) Settle(_ context.Context, batch []*slice.Settle) {
	s.mu.Lock()
	defer s.mu.Unlock()
	clock := s.now()
	for _, st := range batch {
		s.data.settle(clock, st)
	}
}

func (d *data) settle(clock int64, st *slice.Settle) {
	st.Outcome, st.Err, st.Lone, st.Grant = slice.NotRun, errBadArgument, true, slice.Grant{}
	if !Sound(st.Rule, st.Usage) {
		return
	}
	st.Outcome, st.Err, st.Lone = slice.Ran, nil, false
	e, wrote := d.accounts[st.Account], false
	e.lapse(clock)
	before := e
	if st.Grant, wrote = e.Settle(clock, st.Rule, st.Usage); wrote {
		e.until = clock/1000 + e.TTL(clock, st.Rule, before.Account, before.left(clock))
		d.write(clock, st.Account, e)
	}
}

// lapse makes an account that has expired a stranger.
func (e *entry) lapse(clock int64) {
	if clock/1000 > e.until {
		*e = entry{}
	}
}

// left is the time that the key has left in ms, < 0 if there is none.
func (e *entry) left(clock int64) int64 {
	if !e.Stored {
		return -1
	}
	return e.until - clock/1000
}

// write stores an account, or removes an empty one. Each time that there are
// twice as many as lived before, those that have expired go: they cost memory
// alone, since nobody sees them.
func (d *data) write(clock int64, name string, e entry) {
	if !e.Stored {
		delete(d.accounts, name)
		return
	}
	d.accounts[name] = e
	if len(d.accounts) < d.sweepAt {
		return
	}
	for name, e := range d.accounts {
		if clock/1000 > e.until {
			delete(d.accounts, name)
		}
	}
	d.sweepAt = max(fewest, 2*len(d.accounts))
}

// Load returns an account as it is stored; the zero Account if it is not.
func (s *Store) Load(account string) Account {
	a, _ := s.load(account)
	return a
}

// TTL returns how long an account has to live if nobody writes it; 0 if it is
// not stored.
func (s *Store) TTL(account string) time.Duration {
	_, left := s.load(account)
	return left
}

func (s *Store) load(account string) (Account, time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	clock := s.now()
	e := s.data.accounts[account]
	e.lapse(clock)
	if !e.Stored {
		return Account{}, 0
	}
	return e.Account, time.Duration(e.until-clock/1000) * time.Millisecond
}

// Put stores an account for a while, at least 1 ms and in whole milliseconds;
// one that is not Stored is removed.
func (s *Store) Put(account string, a Account, ttl time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	clock := s.now()
	s.data.write(clock, account, entry{Account: a, until: clock/1000 + ttl.Milliseconds()})
}

// Accounts returns a copy of all that is stored, by name.
func (s *Store) Accounts() map[string]Account {
	s.mu.Lock()
	defer s.mu.Unlock()
	clock, all := s.now(), make(map[string]Account, len(s.data.accounts))
	for name, e := range s.data.accounts {
		if e.lapse(clock); e.Stored {
			all[name] = e.Account
		}
	}
	return all
}

// Len returns how many accounts take memory, expired ones among them.
func (s *Store) Len() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.data.accounts)
}
