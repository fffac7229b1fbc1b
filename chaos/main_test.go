package chaos

import (
	"context"
	"flag"
	"os"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
)

var (
	seedFlag    = flag.Uint64("chaos.seed", 1, "the seed of all loads")
	secondsFlag = flag.Float64("chaos.seconds", 0, "how many seconds each fault lasts; 0: as long as it needs")
	clientsFlag = flag.Bool("chaos.clients", false, "measure what settings of the client change")
	verboseFlag = flag.Bool("chaos.timeline", false, "print the timeline of every run, also of those that pass")
)

// lasting is how long a fault lasts that needs d.
func lasting(d time.Duration) time.Duration {
	return max(d, time.Duration(*secondsFlag*float64(time.Second)))
}

// quiet drops what the client logs about servers that the tests take away.
type quiet struct{}

func (quiet) Printf(context.Context, string, ...any) {}

func TestMain(m *testing.M) {
	redis.SetLogger(quiet{})
	os.Exit(m.Run())
}
