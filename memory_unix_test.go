//go:build linux || darwin || freebsd

package hybrid

import (
	"runtime"
	"syscall"
	"testing"
	"time"

	"github.com/hybridlimit/hybrid/internal/ledger"
)

// cpuOver is how much processor time the process takes while so much time passes.
func cpuOver(span time.Duration) time.Duration {
	before := cpuTime()
	time.Sleep(span)
	return cpuTime() - before
}

func cpuTime() time.Duration {
	var u syscall.Rusage
	if syscall.Getrusage(syscall.RUSAGE_SELF, &u) != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// Keys that nobody uses cost a tick nothing but the look that forgets them: each is
// looked at about once a minute.
func TestIdleKeysCostNoTick(t *testing.T) {
	longUnderRace(t)
	const keys, span = 1_000_000, 2 * time.Second
	_, l := onLedger(t, ledger.NewStore(), Options{MaxKeys: keys}, plenty, nil)
	runtime.GC()
	empty := cpuOver(span)
	for _, key := range benchKeys(keys) {
		l.core.Account(key, key)
	}
	runtime.GC()
	full := cpuOver(span)
	t.Logf("in %v an empty node takes %v of CPU, one with %d idle keys %v", span, empty, l.node.Stats().Total.Keys, full)
	if full > empty+span/50 {
		t.Errorf("%d idle keys take %v of CPU in %v, an empty node %v", keys, full, span, empty)
	}
}
