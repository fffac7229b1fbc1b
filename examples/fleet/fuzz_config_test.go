package main

import (
	"errors"
	"flag"
	"io"
	"strings"
	"testing"
)

// FuzzConfig parses any command line: it is refused with an error that says something, or what comes out is in
// its ranges.
func FuzzConfig(f *testing.F) {
	for _, line := range []string{"", "-h", "-nodes 5 -rate 1000", "-nodes 0", "-nodes -1", "-rate 1e9", "-zipf nan", "-limit 5/s", "-limit 5/", "-limit /", "-limit -5/s", "-limit 99999999999999999999/s",
		"-seconds inf", "-seconds 0.05", "-warmup -1s", "-warmup 1h", "-timeout 0", "-accuracy within(0.1,0.2)", "-accuracy within(nan,0)", "-precheck off", "-precheck maybe", "-procs", "-seed -1", "-nodes=5 extra", "-rate 10000000 -seconds 3600", "--", "-"} {
		f.Add(line)
	}
	f.Fuzz(func(t *testing.T, line string) {
		c, err := parseFlags(strings.Fields(line), io.Discard)
		switch {
		case errors.Is(err, flag.ErrHelp):
		case err != nil && err.Error() == "":
			t.Fatalf("%q: an error without words", line)
		case err != nil:
		case c.Nodes < 1 || c.Rate < 1 || c.Keys < 1 || !(c.Zipf >= 0 && c.Zipf <= 5) || !(c.Seconds > 0) || c.Timeout <= 0 || c.Warmup < 0 || c.Limit.Period <= 0 || c.Limit.Count < 1:
			t.Fatalf("%q: %+v", line, c)
		case !(float64(c.Rate)*c.Seconds <= mostRequests):
			t.Fatalf("%q: %+v", line, c)
		}
	})
}
