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
	sound := "0 10 0.001 0 0 0 0 0 0 0 5 1 1 2 1 3 2"
	for _, args := range []string{"", sound, sound + " " + sound, sound + " x", "0", strings.Replace(sound, "10", "nan", 1),
		strings.Replace(sound, "0.001", "1e999", 1), strings.Replace(sound, "2 1 3", "2 65 3", 1), strings.Replace(sound, "2 1 3", "2 -1 3", 1),
		"1000 10 0.001 29933018 0 4 5 6 -1e15 3 5 1 1 2 0", "9007199254740992 9007199254740992 1e-300 1 1 9007199254740992 9007199254740992 4294967295 9007199254740992 9007199254740992 9007199254740992 1 1 1 1 9007199254740992 9007199254740992"} {
		f.Add(args)
	}
	rdb := redistest.Start(f).Client(f)
	ctx := context.Background()
	f.Fuzz(func(t *testing.T, text string) {
		args := argumentsOf(text)
		keys := []string{"a", "b", "c"}
		reply, err := rdb.Eval(ctx, settleSource, keys, args...).Slice()
		if err != nil || len(reply) != len(keys) {
			t.Fatalf("%q: %v %v", text, reply, err)
		}
		for i, key := range keys {
			if rdb.PTTL(ctx, key).Val() == -1 { // −2 is none, which one of a few milliseconds soon is
				t.Fatalf("%q: %s has no TTL", text, key)
			}
			fields, _ := reply[i].([]any)
			refused := len(fields) == 2 && fields[0] == int64(-1)
			if _, ok := readGrant(fields, max(0, len(fields)-9)); !ok && !refused {
				t.Fatalf("%q: %v", text, reply[i])
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

// argumentsOf returns the words of a text as arguments of a script.
func argumentsOf(text string) (args []any) {
	for _, a := range strings.Split(text, " ") {
		args = append(args, a)
	}
	return args
}
