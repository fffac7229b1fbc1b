package precheck

import (
	"testing"
	"unsafe"
)

// aFloor is full, in a fleet of two: 10 tokens, one per tick.
func aFloor() (f *Floor, whole Size, h *History) {
	whole, h, f = Size{Cap: 20, Rate: perTick(2)}, new(History), new(Floor)
	h.Set(0, 2)
	f.Start(10, 0)
	return f, whole, h
}

func TestAFloorServesItsShareAndNoMore(t *testing.T) {
	f, whole, h := aFloor()
	if !f.Full(0, whole, h) {
		t.Error("a new floor is not full")
	}
	for range 10 {
		if !f.Take(0, 1, whole, h) {
			t.Fatal("refused within the share")
		}
	}
	if f.Take(0, 1, whole, h) || f.Full(0, whole, h) {
		t.Error("more than the share")
	}
	if f.Take(2*tick, 3, whole, h) || !f.Take(2*tick, 2, whole, h) {
		t.Error("two ticks earn two tokens")
	}
	if f.Take(0, 1, whole, h) {
		t.Error("a moment in the past earned something")
	}
	if f.Full(11*tick, whole, h) || !f.Full(12*tick, whole, h) {
		t.Error("full after exactly the tokens that were missing")
	}
}

func TestFewerNodesMakeNoTokensAppear(t *testing.T) {
	f, whole, h := aFloor()
	h.Set(tick, 1)
	if got := f.Level(tick, whole, h); got != 10 {
		t.Errorf("level %g at the change, want 10", got)
	}
	if got := f.Level(3*tick, whole, h); got != 14 {
		t.Errorf("level %g, want 10 and two ticks of two", got)
	}
}

func TestMoreNodesClipAlsoInHindsight(t *testing.T) {
	f, whole, h := aFloor()
	h.Set(tick, 10)
	h.Set(2*tick, 1)
	if got := f.Level(3*tick, whole, h); got != 4 {
		t.Errorf("level %g, want a tenth of 20 and one tick of two", got)
	}
}

func TestOwedIsWhatWasTakenAndNotEarnedAgain(t *testing.T) {
	f, whole, h := aFloor()
	if got := f.Owed(0, whole, h); got != 0 {
		t.Errorf("an unused floor owes %g", got)
	}
	f.Take(0, 6, whole, h)
	if got := f.Owed(2*tick, whole, h); got != 4 {
		t.Errorf("owed %g, want 6 taken less 2 earned again", got)
	}
	if got := f.Owed(2*tick, whole, h); got != 0 {
		t.Errorf("owed %g twice", got)
	}
	f.Take(2*tick, 1, whole, h)
	if got := f.Owed(2*tick, whole, h); got != 1 {
		t.Errorf("owed %g, want the 1 since the last call", got)
	}
	f.Take(2*tick, 5, whole, h)
	if got := f.Owed(100*tick, whole, h); got != 0 {
		t.Errorf("a full floor owes %g", got)
	}
}

func TestASuspendedFloorNeitherServesNorEarns(t *testing.T) {
	f, whole, h := aFloor()
	f.Take(0, 5, whole, h)
	f.Suspend(4 * tick)
	f.Suspend(2 * tick) // not cut short
	if f.Take(4*tick-1, 1, whole, h) || f.Level(0, whole, h) != 0 {
		t.Error("served while suspended")
	}
	if on, over := f.Off(tick), f.Off(4*tick); on != 3*tick || over != 0 {
		t.Errorf("off for another %d and %d, want %d and 0", on, over, 3*tick)
	}
	if f.Full(3*tick, whole, h) {
		t.Error("a suspension must not be forgotten")
	}
	if got := f.Level(5*tick, whole, h); got != 6 {
		t.Errorf("level %g, want the 5 left and one tick", got)
	}
	f.Suspend(5*tick + 1)
	if f.Take(6*tick-1, 1, whole, h) || !f.Take(6*tick, 1, whole, h) {
		t.Error("a suspension is rounded up")
	}
}

func TestAFloorFromBeforeALapseStartsAgainEmpty(t *testing.T) {
	f, whole, h := aFloor()
	f.Take(0, 4, whole, h)
	f.NotBefore(5 * tick)
	for _, now := range []int64{tick, 5 * tick} {
		if f.Level(now, whole, h) != 0 || f.Take(now, 1, whole, h) || f.Full(now, whole, h) {
			t.Errorf("at tick %d there is something left", now/tick)
		}
	}
	if got := f.Served(5*tick, whole, h); got != 4 {
		t.Errorf("served %g, want the 4 from before", got)
	}
	if got := f.Owed(5*tick, whole, h); got != 4 {
		t.Errorf("owed %g, want the 4 from before", got)
	}
	f.NotBefore(5 * tick) // the same registration: said again at each use
	if got := f.Level(7*tick, whole, h); got != 2 {
		t.Errorf("level %g, want two ticks from empty", got)
	}
	f.NotBefore(5 * tick)
	if got := f.Level(7*tick, whole, h); got != 2 {
		t.Errorf("level %g, emptied twice by one lapse", got)
	}
}

// It does not matter that nobody came while the registration was new.
func TestALapseIsNoticedLater(t *testing.T) {
	f, whole, h := aFloor()
	h.Set(5*tick, 4)
	f.Suspend(9 * tick)
	f.NotBefore(7 * tick)
	if f.Take(9*tick-1, 1, whole, h) {
		t.Error("a lapse ended the suspension")
	}
	if got := f.Level(13*tick, whole, h); got != 2 {
		t.Errorf("level %g, want four ticks of a half, after the suspension", got)
	}
}

func TestPutGivesBackWhatWasTaken(t *testing.T) {
	f, whole, h := aFloor()
	if f.Put(1) {
		t.Error("nothing was taken")
	}
	f.Take(0, 6, whole, h)
	if f.Put(7) || !f.Put(2) || f.Put(5) {
		t.Error("what was taken can be given back once")
	}
	if got := f.Level(0, whole, h); got != 6 {
		t.Errorf("level %g, want 10 less 6 and 2 back", got)
	}
	if got := f.Owed(0, whole, h); got != 4 {
		t.Errorf("owed %g, want 6 less 2", got)
	}
	if f.Put(1) || f.Level(0, whole, h) != 6 {
		t.Error("what was reported is the account's to give back")
	}
}

func TestPutNeverExceedsTheShare(t *testing.T) {
	f, whole, h := aFloor()
	f.Take(0, 6, whole, h)
	if !f.Put(6) || f.Level(4*tick, whole, h) != 10 {
		t.Error("a floor that was earned again is full, and no more")
	}
	f.Take(4*tick, 10, whole, h)
	h.Set(5*tick, 5)
	if !f.Put(10) || f.Level(5*tick, whole, h) != 4 {
		t.Error("what comes back is clipped by the present fleet")
	}
}

// Costs and limits beyond 32 bits neither wrap the count nor pass unnoticed.
func TestHugeFloors(t *testing.T) {
	whole, h, f := Size{Cap: 1 << 53}, new(History), new(Floor)
	h.Set(0, 1)
	f.Start(1<<53, 0)
	if f.Take(0, 1<<33, whole, h) || !f.Take(0, mostFloor, whole, h) {
		t.Error("the largest floor is 2^32 − 1 tokens")
	}
	if got := f.Owed(0, whole, h); got != mostFloor {
		t.Errorf("owed %g", got)
	}
}

func TestAFloorIsSmall(t *testing.T) {
	if size := unsafe.Sizeof(Floor{}); size != 24 {
		t.Errorf("%d bytes", size)
	}
	if size := unsafe.Sizeof(Bucket{}); size != 16 {
		t.Errorf("a bucket has %d bytes", size)
	}
}

func BenchmarkFloorTake(b *testing.B) {
	f, whole, h := aFloor()
	b.ReportAllocs()
	for i := int64(0); b.Loop(); i++ {
		f.Take(i*tick, 1, whole, h)
	}
}
