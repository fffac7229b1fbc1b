package hybrid

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/hybridlimit/hybrid/exact"
)

// This file is keys of any bytes, which a client chooses to do harm.

// hostileKeys are keys that have broken other systems, and long ones.
func hostileKeys() []string {
	keys := oddKeys(40)
	for _, n := range []int{63, 64, 65, 1 << 10, longestKey - 1, longestKey} {
		for _, b := range []string{"k", "\x00", "\xff", "{", "\n"} {
			keys = append(keys, strings.Repeat(b, n))
		}
	}
	return append(keys, "#"+strings.Repeat("0", 64), exact.CellKey(strings.Repeat("k", 65)),
		"\r\n$3\r\nSET\r\n", "*1\r\n$8\r\nFLUSHALL\r\n", "%s%n%d", "../../etc", "\u202e", "é", "e\u0301", "-1", "nil")
}

// Every key has an account of its own, on every method, whatever is in it; what is too long is refused by
// every method and leaves no trace.
func TestKeysOfAnyBytes(t *testing.T) {
	both(t, strict(1, slow(5)), func(f *fleet) {
		l := f.lims[0]
		keys := hostileKeys()
		slices.Sort(keys)
		keys = slices.Compact(keys)
		for _, key := range keys {
			anyKey(f, l, key)
		}
		st := f.nodes[0].Stats().Total
		if st.FallbackAllowed+st.FallbackDenied+st.Rebuilt > 0 {
			f.t.Errorf("%d keys: %+v", len(keys), st)
		}
		for _, tooLong := range []string{strings.Repeat("k", longestKey+1), strings.Repeat("\xff", 1<<20)} {
			for method, err := range callAll(f.nodes[0], l, tooLong, 1) {
				if !errors.Is(err, ErrInvalidKey) {
					f.t.Errorf("%s of a key of %d bytes: %v", method, len(tooLong), err)
				}
			}
		}
		if n := f.nodes[0].Stats().Total.Keys; n != st.Keys {
			f.t.Errorf("keys that are too long are remembered: %d, not %d", n, st.Keys)
		}
	})
}

// anyKey uses one key's limit up by all methods.
func anyKey(f *fleet, l *Limiter, key string) {
	name := fmt.Sprintf("%.40q (%d bytes)", key, len(key))
	want := func(what string, remaining int64) {
		r, err := l.Peek(ctx, key)
		if err != nil || r.Remaining != remaining || r.Path != PathExact {
			f.t.Errorf("%s, after %s: %+v, %v; want %d", name, what, r, err, remaining)
		}
	}
	want("nothing", 5)
	if r := allow(f.t, l, key, 2); !r.Allowed {
		f.t.Errorf("%s: %+v", name, r)
	}
	want("AllowN(2)", 3)
	if err := l.WaitN(ctx, key, 1); err != nil {
		f.t.Errorf("%s: WaitN: %v", name, err)
	}
	want("WaitN(1)", 2)
	if r, err := f.nodes[0].AllowAll(ctx, Check{l, key, 1}); err != nil || !r.Allowed {
		f.t.Errorf("%s: AllowAll: %+v, %v", name, r, err)
	}
	if r := allow(f.t, l, key, 2); r.Allowed {
		f.t.Errorf("%s: six of five", name)
	}
	if err := f.nodes[0].Flush(ctx); err != nil { // what is on its way back to the store is nowhere else
		f.t.Errorf("%s: Flush: %v", name, err)
	}
	want("AllowAll", 1)
	if err := l.Reset(ctx, key); err != nil {
		f.t.Errorf("%s: Reset: %v", name, err)
	}
	if err := f.nodes[0].Flush(ctx); err != nil {
		f.t.Errorf("%s: Flush: %v", name, err)
	}
	want("Reset", 5)
}

// callAll calls every method that takes a key, and returns the errors by name.
func callAll(n *Node, l *Limiter, key string, cost int64) map[string]error {
	done, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	_, allowN := l.AllowN(done, key, cost)
	_, all := n.AllowAll(done, Check{l, key, cost})
	errs := map[string]error{
		"AllowN": allowN, "AllowAll": all, "WaitN": l.WaitN(done, key, cost),
		"Refund": l.Refund(key, cost), "Charge": l.Charge(key, cost),
	}
	_, errs["Allow"] = l.Allow(done, key)
	_, errs["Peek"] = l.Peek(done, key)
	_, errs["Inspect"] = l.Inspect(done, key)
	errs["Wait"], errs["Reset"] = l.Wait(done, key), l.Reset(done, key)
	return errs
}
