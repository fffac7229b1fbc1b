//go:build pending

package hybrid

import (
	"testing"
	"time"
)

// Who waits for a slow LimitFor does not wait for the store, and must not make
// the node give it up.
func TestSlowLimitForIsNoSlowStore(t *testing.T) {
	inBubble(t, strict(1, PerSecond(1000)), func(f *fleet) {
		f.slowTiers(50 * time.Millisecond)
		if n := f.nodes[0].Stats().StoreDowns; n > 0 {
			t.Errorf("the store was given up %d times", n)
		}
	})
}
