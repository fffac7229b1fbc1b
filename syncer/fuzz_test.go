package syncer

import (
	"strconv"
	"strings"
	"testing"
)

// FuzzScarceID reads any text where the name of an account should be, as another version of the library or
// another program may have written it: it names nobody or an account of this node, and each account by its own
// name alone.
func FuzzScarceID(f *testing.F) {
	for _, id := range []string{"", ":", "1:l:k", "1:l:", "0::k", "-1:l:k", "01:l:k", "+1:l:k", "9999999999999999999:l:k", "2:l:k", "1:l", "3:a:b:c", "1:\x00:\xff"} {
		f.Add(id, "l", "k")
		f.Add(id, "a:b", "c")
	}
	f.Add("1:l:k", "", "")
	f.Fuzz(func(t *testing.T, id, limiter, key string) {
		w := newWorld(t, newFake(t), nil)
		defer w.end()
		if limiter == "" {
			limiter = "l"
		}
		l := w.add(LimiterConfig{Name: limiter, Plan: NewPlan(bucket(10, 1e9), strict)})
		a := l.Account(key, key)
		if got := w.byScarceID(scarceID(limiter, key)); got != a {
			t.Fatalf("%q, %q is not found by its own name", limiter, key)
		}
		if got := w.byScarceID(id); got != nil && (got != a || !sameName(id, scarceID(limiter, key))) {
			t.Fatalf("%q names the account of %q, %q", id, limiter, key)
		}
	})
}

// sameName reports whether two names agree but for how their length is written.
func sameName(id, other string) bool {
	length, rest, _ := strings.Cut(id, ":")
	length2, rest2, _ := strings.Cut(other, ":")
	n, err := strconv.Atoi(length)
	m, err2 := strconv.Atoi(length2)
	return err == nil && err2 == nil && n == m && rest == rest2
}
