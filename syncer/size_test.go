package syncer

import (
	"testing"
	"unsafe"
)

// A million keys have a million accounts: one more field is one more size class of
// the allocator, and what a request on the slice reads must lie in one cache line.
func TestAnAccountIsSmall(t *testing.T) {
	if unsafe.Sizeof(uintptr(0)) < 8 {
		t.Skip("pointers are smaller here")
	}
	equal(t, "bytes of an account", unsafe.Sizeof(Account{}), 96)
	equal(t, "bytes of an active state, for which the allocator takes as many", unsafe.Sizeof(active{}), 384)
	equal(t, "bytes that the slice path reads", unsafe.Offsetof(Account{}.binding), 32)
}
