package hybrid

import (
	"fmt"
	"math"
	"reflect"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hybridlimit/hybrid/exact"
)

// This file is what Stats tells of a node's calls and of its store's health; each
// number counts what it says.

// sumOf adds counts up.
func sumOf(counts map[string]uint64) (n uint64) {
	for _, c := range counts {
		n += c
	}
	return n
}

// untilDown asks until a node has given the store up.
func (f *fleet) untilDown(node int) {
	f.t.Helper()
	for range 1000 {
		if f.nodes[node].Stats().StoreDown {
			return
		}
		allow(f.t, f.lims[node], "is it down", 1)
		time.Sleep(5 * time.Millisecond)
	}
	f.t.Fatal("the store is not given up")
}

// untilUp waits until a node relies on the store again.
func (f *fleet) untilUp(node int) {
	f.t.Helper()
	for range 1000 {
		if !f.nodes[node].Stats().StoreDown {
			return
		}
		time.Sleep(10 * time.Millisecond)
	}
	f.t.Fatal("the store stays given up")
}

// An operation that failed has a cause, in the words of the log.
func TestFailuresByCause(t *testing.T) {
	inBubble(t, single(PerSecond(1000)), func(f *fleet) {
		faults := map[fault]string{refused: "reply LOADING", cutBefore: "connection closed", swallowed: "timeout"}
		for kind, cause := range faults {
			before := f.nodes[0].Stats().Failures[cause]
			f.links[0].Inject(kind)
			for i := 0; f.links[0].Waits(); i++ {
				allow(t, f.lims[0], fmt.Sprint(cause, i), 1)
			}
			time.Sleep(3 * time.Second)
			if n := f.nodes[0].Stats().Failures[cause] - before; n == 0 {
				t.Errorf("no %q: %v", cause, f.nodes[0].Stats().Failures)
			}
		}
		f.links[0].Cut(true)
		f.untilDown(0)
		f.links[0].Cut(false)
		f.untilUp(0)
		time.Sleep(3 * time.Second)
		st := f.nodes[0].Stats()
		if n := sumOf(st.Failures); n != st.Total.NotRun+st.Total.Unknown || n == 0 {
			t.Errorf("%v, but %d not run and %d unknown", st.Failures, st.Total.NotRun, st.Total.Unknown)
		}
		st.Failures["mine"] = 1 // it is a copy
		if f.nodes[0].Stats().Failures["mine"] != 0 {
			t.Error("Stats hands out the node's own map")
		}
	})
}

// The latest changes are kept, with a hook and without one, and without what an
// error says.
func TestStatsTellsTheLatestOutages(t *testing.T) {
	var told []StoreEvent
	setup := single(PerSecond(1000))
	for _, hook := range []func(StoreEvent){nil, func(e StoreEvent) { told = append(told, e) }} {
		setup.options.Hooks.Store = hook
		inBubble(t, setup, func(f *fleet) {
			if n := len(f.nodes[0].Stats().StoreEvents); n != 0 {
				t.Errorf("%d events of a node that is new", n)
			}
			const outages = 20
			for range outages {
				f.links[0].Cut(true)
				f.untilDown(0)
				f.links[0].Cut(false)
				f.untilUp(0)
				time.Sleep(time.Second)
			}
			st := f.nodes[0].Stats()
			if len(st.StoreEvents) != mostEvents || st.StoreDowns != outages {
				t.Fatalf("%d events of %d outages", len(st.StoreEvents), st.StoreDowns)
			}
			for i, e := range st.StoreEvents {
				want := map[bool]string{true: "connection closed"}[e.Down]
				if e.Down != (i%2 == 0) || e.Err != nil || e.Cause != want || i > 0 && !e.At.After(st.StoreEvents[i-1].At) {
					t.Errorf("event %d: %+v", i, e)
				}
			}
			if hook == nil {
				return
			}
			synctest.Wait() // the hook has returned
			if len(told) != 2*outages {
				t.Fatalf("the hook was told of %d events", len(told))
			}
			for i, e := range told[2*outages-mostEvents:] {
				kept := st.StoreEvents[i]
				if e.Down != (e.Err != nil) || e.Down != kept.Down || e.Cause != kept.Cause || !e.At.Equal(kept.At) {
					t.Errorf("the hook was told %+v, and kept is %+v", e, kept)
				}
			}
		})
	}
}

// The bound that docs/accuracy.md gives, as it is now.
func TestOvershoot(t *testing.T) {
	inBubble(t, single(PerMinute(1000)), func(f *fleet) {
		n := f.nodes[0]
		for _, acc := range []Accuracy{Balanced, Strict, Exact, Within(0.03, 0.05)} {
			for _, policy := range []FailurePolicy{FailLocal, FailOpen, FailClosed} {
				opts := &LimiterOptions{Accuracy: acc, OnFailure: policy}
				if _, err := n.Limiter(fmt.Sprint(acc, " ", policy), PerMinute(1000), opts); err != nil {
					t.Fatal(err)
				}
			}
		}
		check := func(when string, extra map[FailurePolicy]float64) {
			t.Helper()
			st := n.Stats()
			for _, l := range n.Limiters() {
				want := l.Accuracy().Over() + extra[l.OnFailure()]
				if got := st.Limiters[l.Name()].Overshoot; got != want {
					t.Errorf("%s, %s: %v, want %v", when, l.Name(), got, want)
				}
			}
			if want := 0.10 + extra[FailOpen]; st.Total.Overshoot != want {
				t.Errorf("%s, in all: %v, want the largest, %v", when, st.Total.Overshoot, want)
			}
		}
		check("while all is well", nil)
		f.links[0].Cut(true)
		f.untilDown(0)
		check("in an outage", map[FailurePolicy]float64{FailLocal: 1, FailOpen: math.Inf(1)})
		f.links[0].Cut(false)
		f.untilUp(0)
		check("afterwards", nil)
	})
}

// A node that runs says how long ago Redis was there, how many keys it may remember
// and how long its calls take.
func TestStatsOfCalls(t *testing.T) {
	setup := single(PerSecond(1000))
	setup.options.MaxKeys = 1234
	inBubble(t, setup, func(f *fleet) {
		time.Sleep(3 * time.Second)
		for i := range 100 {
			allow(t, f.lims[0], fmt.Sprint("k", i), 1)
		}
		st := f.nodes[0].Stats()
		if st.MaxKeys != 1234 {
			t.Errorf("MaxKeys %d", st.MaxKeys)
		}
		if st.SyncLag > time.Millisecond {
			t.Errorf("Redis answered just now, and SyncLag is %v", st.SyncLag)
		}
		for name, h := range map[string]Histogram{"CallTime": st.CallTime, "BatchSize": st.BatchSize} {
			if len(h.Counts) != len(h.Bounds)+1 || !slices.IsSorted(h.Bounds) || h.Count() != st.Calls {
				t.Errorf("%s of %d calls: %+v", name, st.Calls, h)
			}
		}
		if st.BatchSize.Sum != float64(st.Total.Operations) {
			t.Errorf("%v operations in calls, %d in all", st.BatchSize.Sum, st.Total.Operations)
		}
		// A round trip of 600 µs.
		if p := st.CallTime.Quantile(0.99); p < 0.0005 || p > 0.001 || math.Abs(st.CallTime.Sum/float64(st.Calls)-0.0006) > 1e-5 {
			t.Errorf("calls take %v s at the 99th percentile, %v in all: %v", p, st.CallTime.Sum, st.CallTime)
		}
		f.links[0].Cut(true)
		f.untilDown(0)
		before := f.nodes[0].Stats().SyncLag
		time.Sleep(time.Hour)
		if lag := f.nodes[0].Stats().SyncLag - before; lag != time.Hour {
			t.Errorf("an hour later SyncLag is %v more", lag)
		}
	})
}

// What a person asks for who looks at a service under attack.
func TestDeniedKeys(t *testing.T) {
	inBubble(t, single(PerHour(10)), func(f *fleet) {
		l := f.lims[0]
		long := string(slices.Repeat([]byte{'x'}, 100))
		for key, times := range map[string]int{"often": 110, "now and then": 30, "never": 10, long: 60} {
			for range times {
				allow(t, l, key, 1)
			}
		}
		allow(t, l, "too much", 11)
		var got []string
		for _, d := range l.Denied(10) {
			got = append(got, fmt.Sprintf("%.4s %d", d.Key, d.Total))
			if d.Rate <= 0 || d.Rate > float64(d.Total) {
				t.Errorf("%+v", d)
			}
		}
		if want := []string{"ofte 100", exact.CellKey(long)[:4] + " 50", "now  20"}; !slices.Equal(got, want) {
			t.Errorf("%q, want %q", got, want)
		}
		if len(l.Denied(1)) != 1 || len(l.Denied(0)) != 0 || len(l.Denied(-1)) != 0 {
			t.Error("more keys than were asked for")
		}
	})
}

// Sums are of everything that is a count.
func TestStatsAddUp(t *testing.T) {
	var one, two, sum LimiterStats
	for i := range reflect.TypeFor[LimiterStats]().NumField() {
		for k, s := range []*LimiterStats{&one, &two} {
			field := reflect.ValueOf(s).Elem().Field(i)
			switch n := 10*(i+1) + k; field.Kind() {
			case reflect.Uint64:
				field.SetUint(uint64(n))
			case reflect.Float64:
				field.SetFloat(float64(n))
			default:
				field.SetInt(int64(n))
			}
		}
	}
	sum.add(one)
	sum.add(two)
	largest := map[string]bool{"Fleet": true, "Overshoot": true}
	for i := range reflect.TypeFor[LimiterStats]().NumField() {
		want := 20*(i+1) + 1
		name := reflect.TypeFor[LimiterStats]().Field(i).Name
		if largest[name] {
			want = 10*(i+1) + 1
		}
		if got := fmt.Sprint(reflect.ValueOf(sum).Field(i)); got != fmt.Sprint(want) {
			t.Errorf("%s: %s, want %d", name, got, want)
		}
	}
}

// What a node has done can still be read when it is closed.
func TestStatsOfWhatIsClosed(t *testing.T) {
	inBubble(t, single(PerHour(100)), func(f *fleet) {
		n := f.nodes[0]
		other := f.limiterOf("other", PerHour(100), Strict)
		allow(t, other, "k", 1)
		allow(t, f.lims[0], "k", 1)
		if err := other.Close(); err != nil {
			t.Error(err)
		}
		f.leaveAll()
		st := n.Stats()
		if _, there := st.Limiters["other"]; there || st.Limiters["api"].ExactAllowed != 1 {
			t.Errorf("%+v", st.Limiters)
		}
	})
}
