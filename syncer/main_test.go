package syncer

import (
	"flag"
	"os"
	"testing"
)

// Searches are shorter under the race detector, which slows them tenfold. The
// command line still has the last word.
func TestMain(m *testing.M) {
	if raceEnabled {
		if err := flag.Set("rapid.checks", "15"); err != nil {
			panic(err)
		}
	}
	os.Exit(m.Run())
}
