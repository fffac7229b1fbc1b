package slice

import (
	"fmt"
	"testing"
)

// full returns a full table of untouched entries that remember something.
func full(t *testing.T, n int) (*Table[*fake], *Ring[*fake], []*fake) {
	tb, r := fakeTable(n)
	all := make([]*fake, n)
	for i := range all {
		all[i], _ = put(t, tb, fmt.Sprint("old-", i))
	}
	return tb, r, all
}

func TestWhoRemembersNothingLeavesFirst(t *testing.T) {
	tb, r, all := full(t, 10)
	all[5].holds = false
	all[5].touched.Store(true)
	if _, evicted := put(t, tb, "new"); evicted != nil {
		t.Error("nothing had to be given back")
	}
	if _, ok := tb.Load("old-5"); ok || !all[5].retired {
		t.Error("still there")
	}
	if tb.Len() != 10 || r.Len() != 10 || r.Evictions() != 1 {
		t.Errorf("%d entries, %d slots, %d evictions", tb.Len(), r.Len(), r.Evictions())
	}
}

func TestTheUntouchedLeaveInTurn(t *testing.T) {
	tb, _, all := full(t, 10)
	for _, i := range []int{0, 1, 3} {
		all[i].touched.Store(true)
	}
	for k, want := range []int{2, 4, 5} {
		_, evicted := put(t, tb, fmt.Sprint("new-", k))
		if len(evicted) != 1 || evicted[0] != all[want] {
			t.Errorf("%v left, want old-%d", evicted, want)
		}
	}
}

// A key in use outlives any flood of keys that are used once.
func TestAFloodDoesNotEvictAKeyInUse(t *testing.T) {
	tb, r, all := full(t, 300)
	for i := range 3000 {
		if i%100 == 0 {
			all[0].touched.Store(true)
		}
		put(t, tb, fmt.Sprint("flood-", i))
	}
	if got, ok := tb.Load("old-0"); !ok || got != all[0] {
		t.Error("the key in use was evicted")
	}
	if r.Len() != 300 || r.Evictions() != 3000 {
		t.Errorf("%d slots, %d evictions", r.Len(), r.Evictions())
	}
}

func TestIfAllAreTouchedOneLeavesAnyway(t *testing.T) {
	tb, _, all := full(t, 500)
	for _, f := range all {
		f.touched.Store(true)
	}
	if _, evicted := put(t, tb, "new"); len(evicted) != 1 || evicted[0] != all[0] {
		t.Errorf("evicted %v", evicted)
	}
	if !all[reach].Touched() {
		t.Error("more slots were visited than the bound says")
	}
}

func TestNobodyLeavesDuringASettle(t *testing.T) {
	tb, r, all := full(t, 3)
	for _, f := range all {
		f.flying = true
	}
	e, evicted, stored := tb.LoadOrMake("new", func() *fake { return newFake(tb, "new") })
	if stored || evicted != nil || e.key != "new" || tb.Len() != 3 || r.Evictions() != 0 {
		t.Error("an entry left in the middle of its settle")
	}
	if _, ok := tb.Load("new"); ok {
		t.Error("stored beyond the bound")
	}
	all[1].mu.Lock() // in use
	all[1].flying, all[2].flying = false, false
	put(t, tb, "new")
	all[1].mu.Unlock()
	if !all[2].retired || all[1].retired {
		t.Error("a locked entry is in use")
	}
}

func TestTablesShareTheRing(t *testing.T) {
	r := NewRing[*fake](2)
	one, two := NewTable(r), NewTable(r)
	put(t, one, "k")
	put(t, two, "k")
	put(t, two, "l")
	if one.Len() != 0 || two.Len() != 2 {
		t.Errorf("%d and %d entries", one.Len(), two.Len())
	}
}

func TestSweepRetiresWhoRemembersNothing(t *testing.T) {
	tb, r, all := full(t, 200)
	for i, f := range all {
		f.holds = i%2 == 0
		f.touched.Store(i%4 == 1)
	}
	if got := r.Sweep(200); got != 50 {
		t.Errorf("removed %d, want 50", got)
	}
	if got := r.Sweep(300); got != 50 {
		t.Errorf("removed %d, want the 50 that were touched before", got)
	}
	if tb.Len() != 100 || r.Len() != 100 || r.Evictions() != 0 {
		t.Errorf("%d entries, %d slots, %d evictions", tb.Len(), r.Len(), r.Evictions())
	}
	for _, f := range all {
		f.holds = false
	}
	if got := r.Sweep(1000); got != 100 || r.Sweep(10) != 0 || r.Len() != 0 {
		t.Errorf("removed %d, %d slots are left", got, r.Len())
	}
	put(t, tb, "again")
}

func TestSweepVisitsNoMoreThanItIsAsked(t *testing.T) {
	_, r, all := full(t, 500)
	for _, f := range all {
		f.touched.Store(true)
	}
	r.Sweep(150)
	for i, f := range all {
		if f.touched.Load() != (i >= 150) {
			t.Fatalf("slot %d", i)
		}
	}
}

// Its owner may retire and unlink an entry; the slot is free when the hand comes.
func TestSlotsOfRemovedEntriesComeBack(t *testing.T) {
	tb, r, all := full(t, 5)
	all[3].Retire(true)
	all[3].Unlink()
	if tb.Len() != 4 || r.Len() != 5 {
		t.Errorf("%d entries, %d slots", tb.Len(), r.Len())
	}
	if _, evicted := put(t, tb, "old-3"); evicted != nil {
		t.Error("somebody was forced out beside a free slot")
	}
	if tb.Len() != 5 {
		t.Errorf("%d entries", tb.Len())
	}
}

func TestSlotsGrowByChunks(t *testing.T) {
	var s slots[*int]
	for i := range 2*chunk + 1 {
		s.push(&i)
	}
	s.remove(0)
	s.remove(s.n - 1)
	if *s.at(0) != 2*chunk || s.n != 2*chunk-1 || *s.at(chunk) != chunk {
		t.Error("slots are out of order")
	}
	if p := *s.slot(2*chunk - 1); p != nil {
		t.Error("a freed slot keeps its entry alive")
	}
}

// Whoever walks over the ring sees all that stay, also while others leave and come.
func TestEachSeesAllThatStay(t *testing.T) {
	const stay, leave = 5 * sweepBatch, 3*sweepBatch + 7
	r := NewRing[*fake](stay + leave)
	tables := []*Table[*fake]{NewTable(r), NewTable(r)}
	for i := range stay + leave {
		tb := tables[i%2]
		e, _ := put(t, tb, fmt.Sprint(i))
		e.holds = i%8 < 5 // these stay
	}
	times := map[*fake]int{}
	r.Each(func(e *fake) { times[e]++ })
	if len(times) != stay+leave {
		t.Errorf("%d of %d are seen", len(times), stay+leave)
	}
	for e, n := range times {
		if n != 1 {
			t.Errorf("%s is seen %d times, and nothing changes", e.key, n)
		}
	}
	clear(times)
	steps := 0
	r.Each(func(e *fake) {
		times[e]++
		if steps++; steps%3 == 0 {
			r.Sweep(5)
		}
	})
	for i := range stay + leave {
		if e, ok := tables[i%2].Load(fmt.Sprint(i)); ok && e.holds && times[e] == 0 {
			t.Errorf("%d stayed, and is not seen", i)
		}
	}
	if n := tables[0].Len() + tables[1].Len(); n > (stay+leave)*3/4 {
		t.Errorf("%d are left: nobody went", n)
	}
	NewRing[*fake](4).Each(func(*fake) { t.Error("an empty ring has entries") })
}
