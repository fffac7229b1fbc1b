package syncer

import (
	"errors"
	"testing"
	"time"

	"github.com/hybridlimit/hybrid/slice"
)

func (f *fake) published() []slice.Mark {
	f.mu.Lock()
	defer f.mu.Unlock()
	return append([]slice.Mark(nil), f.marks...)
}

// A window whose tokens sit in another node's slice: the refused node says so,
// once per pacing period and not per request.
func TestTheRefusedNodeMarks(t *testing.T) {
	story(t, func(t *testing.T, w *world) {
		rule := fixed(100, time.Minute)
		l := w.limiter(rule, strict)
		w.store.lend("l/k", rule, 60)
		w.store.use("l/k", rule, 40)
		flood(l, "k", 1, time.Millisecond, 30*time.Second)
		marks := w.store.published()
		// The pace is 5·60/100 = 3 s, give or take 20 %: a refusal 2.4 s after a
		// mark makes none, so that marks may be 4.8 s apart. The first is short.
		if len(marks) < 6 || len(marks) > 13 {
			t.Fatalf("%d marks in 30 s", len(marks))
		}
		for i, m := range marks {
			if m.Account != "1:l:k" || m.Cost != 1 {
				t.Errorf("marked %+v", m)
			}
			// They are stamped when a tick publishes them, 100 ms late at most.
			if i > 0 && m.At-marks[i-1].At < 2_899_000 {
				t.Errorf("marks %d µs apart", m.At-marks[i-1].At)
			}
		}
	})
}

// An account is not scarce when its tokens are used up, or when what is lent
// is what pacing lends anyway.
func TestAFullAccountIsNotScarce(t *testing.T) {
	story(t, func(t *testing.T, w *world) {
		l := w.limiter(fixed(100, time.Minute), strict)
		w.store.use("l/k", l.Plan().Rule, 100)
		flood(l, "k", 1, time.Millisecond, 10*time.Second)
		equal(t, "marks of a window that is used up", len(w.store.published()), 0)

		rule := bucket(100, 10*time.Second)
		b := w.add(LimiterConfig{Name: "b", Plan: NewPlan(rule, strict)})
		w.store.use("b/k", rule, 100) // a period of 0.5 s lends 5
		flood(b, "k", 1, time.Millisecond, 400*time.Millisecond)
		equal(t, "marks for what pacing lends", len(w.store.published()), 0)
	})
}

// Two nodes on one window: what the first hoards reaches the second, and the
// window is used up.
func TestRecallUsesTheWindowUp(t *testing.T) {
	story(t, func(t *testing.T, w *world) {
		w.store.shared = true
		other := newWorld(t, w.store, func(c *Config) { c.Member = "other" })
		rule := fixed(600, time.Minute)
		a, b := w.limiter(rule, strict), other.limiter(rule, strict)
		flood(a, "k", 1, 50*time.Millisecond, 10*time.Second) // 200 of 600
		allowed, _ := flood(b, "k", 1, 20*time.Millisecond, 49*time.Second)
		got := allowed[byStore] + allowed[bySlice]
		if got < 396 || got > 400 {
			t.Errorf("the second node got %d of the 400 that were left", got)
		}
		time.Sleep(2 * time.Second)
		other.end()
	})
}

// A node that holds nothing does not poll, and a store without marks is no
// trouble.
func TestPollsAndTheirErrors(t *testing.T) {
	story(t, func(t *testing.T, w *world) {
		l := w.limiter(bucket(60_000, time.Minute), strict)
		time.Sleep(5 * time.Second)
		equal(t, "polls of a node without slices", w.store.polled(), 0)
		w.store.set(func() { w.store.markErr = errors.New("no such command") })
		hold(t, l, "k")
		time.Sleep(time.Second)
		if n := w.ExchangeErrors(); n < 5 || w.Down() {
			t.Errorf("%d errors, down %t", n, w.Down())
		}
		w.store.set(func() { w.store.markErr = nil })
	})
}

func (f *fake) polled() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.polls
}

// Names and keys may hold any bytes; no two accounts share an ID.
func TestScarceIDsAreUnambiguous(t *testing.T) {
	story(t, func(t *testing.T, w *world) {
		plan := NewPlan(bucket(60_000, time.Minute), strict)
		seen := map[string]bool{}
		for _, name := range []string{"a", "a:b", "1:a", ":", "10"} {
			l := w.add(LimiterConfig{Name: name, Plan: plan})
			for _, key := range []string{"", "b", "b:c", ":", "3:x"} {
				a := l.Account(key, key)
				id := scarceID(name, key)
				if seen[id] || w.byScarceID(id) != a {
					t.Errorf("%q of limiter %q: ID %q", key, name, id)
				}
				seen[id] = true
			}
		}
		for _, id := range []string{"", ":", "1", "1:", "1:a", "-1:a:b", "99:a:b", "x:a:b", "1:a-b", "18446744073709551617:a:b"} {
			if w.byScarceID(id) != nil {
				t.Errorf("ID %q names an account", id)
			}
		}
	})
}
