package exact

import (
	"context"
	"reflect"
	"strings"
	"testing"

	"github.com/hybridlimit/hybrid/internal/ledger"
	"github.com/hybridlimit/hybrid/internal/redistest"
	"github.com/hybridlimit/hybrid/slice"
)

// FuzzStoredState puts any bytes where an account should be: the script
// answers as the ledger does, which has a reader of its own.
func FuzzStoredState(f *testing.F) {
	for _, state := range badStates {
		f.Add(state)
	}
	for _, state := range []string{"0 1 0 0", "5.5 1795980557158196 1 2", "1e3 1795980557158196 0 47", "3. 7 0 0", "1e+17 1 0 0", "9007199254740992 8 0 1"} {
		f.Add(state)
	}
	rdb := redistest.Start(f).Client(f)
	s, ctx := newStore(f, rdb), context.Background()
	f.Fuzz(func(t *testing.T, state string) {
		e := one(s, "fuzz")
		e.Usage.Want, e.Usage.Least, e.Usage.Unit, e.Usage.Divisor = 10, 1, 1, 2
		must(t, rdb.Set(ctx, e.Account, state, 0).Err())
		s.Settle(ctx, []*slice.Settle{e})
		if e.Outcome != slice.Ran {
			t.Fatalf("%q: %v %v", state, e.Outcome, e.Err)
		}
		m := ledger.Parse(state)
		if want, _ := m.Settle(e.Grant.Clock, e.Rule, e.Usage); !reflect.DeepEqual(want, e.Grant) {
			t.Fatalf("%q:\n got %+v\nwant %+v", state, e.Grant, want)
		}
	})
}

// FuzzArguments calls the script with any arguments, and any number of them: it
// never raises an error, answers for each key, and never leaves a key that does not expire.
func FuzzArguments(f *testing.F) {
	sound, terms := "1 0 0 0 5 0 0 1 3 2 1", ";0 10 0.001 0 0 1 1 2"
	for _, args := range []string{"", sound, sound + ";" + sound, sound + terms, strings.Repeat(sound+";", 3)[:3*len(sound)+2] + terms, sound + " x;;" + sound + terms,
		"2 0 0 0 5 0 0;1 0 0 0 5 0 0;0 0 0 0 5 0 0" + terms + terms, "1 0 0 0 5 0 0 1;1 0 0 0 5 0 0 0 1;1 0 0 0 5 0 0 1 -1" + terms,
		"1 0 0 0 0 nan 0;1 0 0 0 0 0 inf;1 0 0 0 99999999999999999999999999 0 0;1 0x10 1000 0.001 0 0 1 1 2", "1 0 0 0 0 1e999 0;1 0 0 0 0 5 -1;1 0 0 0 1 0 0;0 10 1e999 0 0 0 0 0",
		"1 4 5 6 5 -1.0e15 3;2 4 5 6 5 0 0;3 4 5 6 0 1 1;1000 10 0.001 29933018 0 1 1 2;0 10 nan 29933018 0 1 1 2;0 0 1 1 1 0 0 0",
		"1 9007199254740992 9007199254740992 4294967295 9007199254740992 9007199254740992 9007199254740992 9007199254740992 9007199254740992;;;9007199254740992 9007199254740992 1.0e-300 1 1 1 1 1"} {
		f.Add(args)
	}
	rdb := redistest.Start(f).Client(f)
	ctx := context.Background()
	f.Fuzz(func(t *testing.T, text string) {
		args := argumentsOf(text, ";")
		keys := []string{"a", "b", "c"}
		reply, err := rdb.Eval(ctx, settleSource, keys, args...).Slice()
		if err != nil {
			t.Fatalf("%q: %v", text, err)
		}
		group := make([]*slice.Settle, len(keys))
		for i := range group {
			u := slice.Usage{Want: slice.MaxTokens} // it may have asked for anything
			if i < len(args) {                      // it has two words for each run behind the first seven
				for range (strings.Count(args[i].(string), " ") - 6) / 2 {
					u.Needs = append(u.Needs, slice.Need{Cost: 1, Count: slice.MaxTokens})
				}
			}
			group[i] = &slice.Settle{Usage: u}
		}
		readReply(group, &call{reply: reply})
		for i, key := range keys {
			if rdb.PTTL(ctx, key).Val() == -1 { // −2 is none, which one of a few milliseconds soon is
				t.Fatalf("%q: %s has no TTL", text, key)
			}
			if e := group[i]; e.Outcome == slice.Unknown || e.Outcome == slice.NotRun && e.Err.Error() != badArgument {
				t.Fatalf("%q: %s: %v %v of %v", text, key, e.Outcome, e.Err, reply)
			}
		}
		rdb.Del(ctx, keys...)
	})
}

// FuzzCellKey: equal keys have equal cells, different ones do not, and none is long.
func FuzzCellKey(f *testing.F) {
	for _, k := range hostile() {
		f.Add(k, "a")
		f.Add(k, CellKey(k))
	}
	f.Fuzz(func(t *testing.T, a, b string) {
		if len(CellKey(a)) > 65 {
			t.Fatal("long")
		}
		if (a == b) != (CellKey(a) == CellKey(b)) {
			t.Fatalf("%q and %q", a, b)
		}
	})
}

// argumentsOf returns the parts of a text as arguments of a script.
func argumentsOf(text, sep string) (args []any) {
	for _, a := range strings.Split(text, sep) {
		args = append(args, a)
	}
	return args
}
