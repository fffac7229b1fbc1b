package precheck

import (
	"encoding/binary"
	"math"
	"testing"
)

// FuzzFloor gives a floor and its history any sequence of operations with any
// numbers: the level stays between 0 and the share, what is owed between 0 and
// what was taken, and a take never finds more than the level.
func FuzzFloor(f *testing.F) {
	f.Add(20.0, 1e-8, []byte{0, 2, 1, 5, 2, 0, 0, 9, 3, 40, 1, 1})
	f.Add(1e15, 1.0, []byte{0, 1, 1, 255, 2, 255, 0, 0, 4, 200, 1, 3})
	f.Add(50.0, 1e-7, []byte{0, 1, 1, 9, 6, 140, 7, 3, 4, 4, 1, 0, 7, 0, 2, 0})
	f.Fuzz(func(t *testing.T, capacity, rate float64, ops []byte) {
		if !(capacity >= 0 && capacity <= 1<<54 && rate >= 0 && rate <= 1e9) {
			t.Skip()
		}
		whole, now, taken := Size{Cap: capacity, Rate: rate}, int64(0), 0.0
		var floor Floor
		var h History
		h.Set(now, 1)
		for ; len(ops) >= 2; ops = ops[2:] {
			n := int64(ops[1])
			switch ops[0] % 8 {
			case 0:
				h.Set(now, int(n)+1)
			case 1:
				if floor.Take(now, n+1, whole, &h) {
					taken += float64(n + 1)
				}
			case 2:
				owed := floor.Owed(now, whole, &h)
				if owed < 0 || owed > taken {
					t.Fatalf("owes %g of %g taken", owed, taken)
				}
				taken = 0
			case 3:
				floor.Suspend(now + n*tick)
			case 4:
				now += n * n * n * n * tick
			case 5:
				floor.Start(float64(n), now)
				taken = 0
			case 6:
				floor.NotBefore(now + (n-128)*tick)
			case 7:
				if floor.Put(n) {
					taken -= float64(n)
				}
			}
			level := floor.Level(now, whole, &h)
			if !(level >= 0) || level > h.Share(whole).Cap {
				t.Fatalf("level %g of %g", level, h.Share(whole).Cap)
			}
		}
	})
}

// FuzzMemo checks the memo against its one-line meaning, for any numbers.
func FuzzMemo(f *testing.F) {
	f.Add(int64(5), int64(100), int64(130), []byte{5, 0, 0, 0, 0, 0, 0, 0, 99, 0, 0, 0, 0, 0, 0, 0})
	f.Add(int64(1), int64(math.MaxInt64), int64(math.MaxInt64), make([]byte, 32))
	f.Fuzz(func(t *testing.T, cost, until, retry int64, calls []byte) {
		if cost < 1 || until < 0 || retry < until {
			t.Skip()
		}
		m := &Memo{Cost: cost, Until: until, Retry: retry}
		var denied int64
		for ; len(calls) >= 16; calls = calls[16:] {
			n := int64(binary.LittleEndian.Uint64(calls) >> 1)
			now := int64(binary.LittleEndian.Uint64(calls[8:]) >> 1)
			got := m.Denies(n, now)
			if got != (n >= cost && now < until) {
				t.Fatalf("cost %d at %d: %t", n, now, got)
			}
			if got {
				denied++
			}
			if wait := m.RetryAfter(now); wait <= 0 || retry < math.MaxInt64 && now < retry && now+int64(wait) != retry {
				t.Fatalf("retry after %d", wait)
			}
		}
		if requests, tokens := m.Drain(); requests != denied || tokens < denied*min(cost, mostCounted) {
			t.Fatalf("counted %d requests and %d tokens, denied %d", requests, tokens, denied)
		}
	})
}
