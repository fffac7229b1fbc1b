package redistest

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/alicebob/miniredis/v2"
)

// InBubble runs a test in the virtual time of a synctest bubble, which begins at
// midnight UTC, with a miniredis that goes by its clock. A Link leads there: TCP
// would leave the bubble. What the test opens it closes by Cleanup of the inner t.
func InBubble(t *testing.T, test func(t *testing.T, mini *miniredis.Miniredis)) {
	t.Helper()
	NeedMini(t)
	synctest.Test(t, func(t *testing.T) {
		mini := miniredis.NewMiniRedis()
		mini.ClockTTL(true)
		t.Cleanup(func() {
			time.Sleep(2 * time.Second) // a client that could not dial tries each second, until it sees that it is closed
			mini.Close()
		})
		test(t, mini)
	})
}
