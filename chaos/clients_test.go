package chaos

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/maintnotifications"
)

// clients are settings of the client that might matter when Redis fails.
var clients = []struct {
	name string
	set  func(*redis.Options)
}{
	{"as recommended", func(*redis.Options) {}},
	{"without ContextTimeoutEnabled", func(o *redis.Options) { o.ContextTimeoutEnabled = false }},
	{"ReadTimeout 500ms", func(o *redis.Options) { o.ReadTimeout = 500 * time.Millisecond }},
	{"DialTimeout 500ms", func(o *redis.Options) { o.DialTimeout = 500 * time.Millisecond }},
	{"DialerRetries 1", func(o *redis.Options) { o.DialerRetries = 1 }},
	{"all three", func(o *redis.Options) {
		o.ReadTimeout, o.DialTimeout, o.DialerRetries = 500*time.Millisecond, 500*time.Millisecond, 1
	}},
	{"PoolSize 4", func(o *redis.Options) { o.PoolSize = 4 }},
	{"PoolSize 100", func(o *redis.Options) { o.PoolSize = 100 }},
	{"PoolTimeout 100ms", func(o *redis.Options) { o.PoolTimeout = 100 * time.Millisecond }},
	{"MaxRetries -1", func(o *redis.Options) { o.MaxRetries = -1 }},
	{"no maintenance notices", func(o *redis.Options) {
		o.MaintNotificationsConfig = &maintnotifications.Config{Mode: maintnotifications.ModeDisabled}
	}},
}

// TestClientSettings measures what settings of the client change about a fault.
// It only prints: whatever the settings, the promises must hold.
func TestClientSettings(t *testing.T) {
	if !*clientsFlag {
		t.Skip("a measurement: -chaos.clients")
	}
	t.Logf("%-16s %-24s %9s %9s %9s %9s %11s %11s", "fault", "client", "longest", "timers", "tripped", "back", "goroutines", "connections")
	for _, f := range slices.Concat(faults, networkFaults) {
		if !slices.Contains([]string{"stopped", "black hole", "refused port", "slow by 2 s"}, f.name) {
			continue
		}
		for _, c := range clients {
			f := f
			f.client = func(_ *run, o *redis.Options) { c.set(o) }
			row := ""
			t.Run(c.name, func(t *testing.T) { row = play(t, f).row(c.name) }) // its fleet ends with it
			t.Log(row)
		}
	}
}

// row sums up what a client's settings can change.
func (o *outcome) row(client string) string {
	var longest, tripped time.Duration
	for i := range o.answers {
		longest = max(longest, o.answers[i].took)
	}
	for node := range o.nodes {
		for _, out := range o.of(o.outages(node)) {
			tripped = max(tripped, out.from-o.began)
		}
	}
	calm, worst, end := o.peaks()
	return fmt.Sprintf("%-16s %-24s %7.1fms %7.1fms %7.0fms %7.0fms %3d %3d %3d %3d %3d %3d", o.fault, client, milliseconds(longest), milliseconds(o.worstControl(0, o.stopped)),
		milliseconds(tripped), milliseconds(o.recovered()-o.ready), calm.goroutines, worst.goroutines, end.goroutines, calm.connections, worst.connections, end.connections)
}
