package hybrid

import (
	"context"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/hybridlimit/hybrid/internal/ledger"
	"github.com/hybridlimit/hybrid/slice"
)

// loud is a store whose errors name the accounts that they are about, as those of a
// proxy might. Each so many settles one is refused, and all of them while it is away.
type loud struct {
	*ledger.Store
	settles atomic.Int64
	away    atomic.Bool
}

// loudError is the error of an account.
type loudError struct{ account string }

func (e *loudError) Error() string { return "OOM at " + e.account }
func (e *loudError) RedisError()   {}

func (s *loud) Settle(ctx context.Context, batch []*slice.Settle) {
	var sound []*slice.Settle
	for _, st := range batch {
		away := s.away.Load()
		if !away && s.settles.Add(1)%50 != 0 {
			sound = append(sound, st)
			continue
		}
		st.Outcome, st.Err, st.Lone = slice.NotRun, &loudError{st.Account}, !away
	}
	s.Store.Settle(ctx, sound)
}

func (s *loud) Heartbeat(ctx context.Context, member string, ttl time.Duration, fleets []*slice.Fleet) {
	if !s.away.Load() {
		s.Store.Heartbeat(ctx, member, ttl, fleets)
		return
	}
	for _, f := range fleets {
		f.Err = &loudError{f.Limiter}
	}
}

// marked is in every key of the test, and in nothing else.
const marked = "tenant-4711"

// Whatever keys there are, and whatever happens to them: what a node tells of itself is
// as many numbers, and no text of it has a key in it.
func TestLabels(t *testing.T) {
	keys := 10_000
	if *full {
		keys = 1_000_000
	}
	few, many := tellAll(t, 10), tellAll(t, keys)
	for _, all := range []*telling{few, many} {
		causes := all.causes()
		if len(causes) == 0 || len(causes) > 5 {
			t.Errorf("causes %q", causes)
		}
		all.texts = append(all.texts, causes...)
	}
	if !slices.Equal(few.series, many.series) {
		t.Errorf("10 keys have %d series, %d keys have %d:\n%q\n%q", len(few.series), keys, len(many.series), few.series, many.series)
	}
	for _, all := range []*telling{few, many} {
		for _, text := range append(all.series, all.texts...) {
			if strings.Contains(text, marked) {
				t.Errorf("a key is told: %q", text)
			}
		}
		if len(all.series) < 100 || len(all.texts) < 4 {
			t.Errorf("the run is none: %d series, %q", len(all.series), all.texts)
		}
	}
	t.Logf("%d series, %d texts", len(many.series), len(many.texts))
}

// telling is what a node has told of itself.
type telling struct {
	series []string // names of all numbers, as labels would have them
	texts  []string // what is in strings, and in the log
}

// tellAll lets a node meet so many keys, a store that refuses some of them, and an
// outage.
func tellAll(t *testing.T, keys int) *telling {
	t.Helper()
	book, logger := newLogBook()
	store := &loud{Store: ledger.NewStore()}
	opts, err := (&Options{Logger: logger, MaxKeys: keys/2 + 1, StoreTimeout: 200 * time.Millisecond}).withDefaults()
	if err != nil {
		t.Fatal(err)
	}
	n := newNode(store, opts)
	var lims []*Limiter
	for _, acc := range []Accuracy{Balanced, Strict, Exact} {
		l, err := n.Limiter(acc.String(), PerHour(10), &LimiterOptions{Accuracy: acc})
		if err != nil {
			t.Fatal(err)
		}
		lims = append(lims, l)
	}
	for i := range keys {
		for k := range 1 + 36*(i%100/99) { // some are used up
			allow(t, lims[(i+k)%len(lims)], oddKey(i), 1)
		}
	}
	for i := 0; n.events.poisoned.Load() == 0; i++ {
		allow(t, lims[2], oddKey(i%keys), 1)
	}
	store.away.Store(true)
	for i := 0; !n.sync.Down(); i++ {
		allow(t, lims[2], oddKey(i%keys), 1)
		time.Sleep(time.Millisecond)
	}
	time.Sleep(50 * time.Millisecond) // errors are read
	var all telling
	all.walk("", reflect.ValueOf(n.Stats()))
	all.texts = append(all.texts, book.lines(n)...)
	store.away.Store(false)
	_ = n.Close() // what was refused is not returned
	return &all
}

// oddKey is a key with whatever labels could trip over.
func oddKey(i int) string {
	return fmt.Sprintf("%s\n\"}{%d,\xff", marked, i) + strings.Repeat("x", i%3*40)
}

// walk lists the numbers of a value, by name, and the strings in it.
func (all *telling) walk(name string, v reflect.Value) {
	switch v.Kind() {
	case reflect.Struct:
		if e, ok := v.Interface().(StoreEvent); ok { // nobody counts these
			all.texts = append(all.texts, fmt.Sprint(e))
			return
		}
		for i := range v.NumField() {
			all.walk(name+"."+v.Type().Field(i).Name, v.Field(i))
		}
	case reflect.Map:
		for _, key := range v.MapKeys() {
			all.walk(name+"["+key.String()+"]", v.MapIndex(key))
		}
	case reflect.Slice:
		for i := range v.Len() {
			all.walk(fmt.Sprintf("%s[%d]", name, i), v.Index(i))
		}
	case reflect.String:
		all.texts = append(all.texts, v.String())
	default:
		all.series = append(all.series, name)
	}
}

// causes takes the series of causes out, which depend on what went wrong and when.
func (all *telling) causes() (found []string) {
	all.series = slices.DeleteFunc(all.series, func(name string) bool {
		cause := strings.HasPrefix(name, ".Failures[")
		if cause {
			found = append(found, name)
		}
		return cause
	})
	slices.Sort(all.series)
	return found
}
