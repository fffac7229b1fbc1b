package sim

import (
	"flag"
	"io"
	"testing"
)

// FuzzFlags gives any text to each flag of an experiment: it is refused, or read as something that is written
// so that it is read again as the same.
func FuzzFlags(f *testing.F) {
	for name, texts := range map[string][]string{
		"faults":    {"", "cut:3@30s,mend@40s,wipe@50s+2s", "crash@1s", "crash:-1@1s", "pause:0@1s+0s", "join@-1s", "cut:3@1s+1s", "wipe@1s", "x@1s", "@", ":@+", "crash:99999999999999999999@1s", "stale@1e9h+1s"},
		"limit":     {"1000/min", "1000/min:200", "window:1000/min", "5/90s", "0/s", "-1/s", "1/0s", "window:5/s:7", "9007199254740993/d", "/", "1/", "1/1500ns", "window:", "1/s:"},
		"accuracy":  {"balanced", "STRICT", "exact", "within:0.05:0.1", "within:nan:0", "within:2:0", "within:0.1:0", "within:0:0", "within", "within::", "within:1e-12:0"},
		"onfailure": {"local", "open", "closed", "", "Open"},
		"rtt":       {"600us", "exp:3ms:15ms", "uniform:1ms:2ms", "uniform:2ms:1ms", "exp:", "-1s", "0"},
		"arrivals":  {"poisson", "batch:5", "batch:0", "onoff:1s:2s", "onoff:0s:0s", "batch:", "x"},
		"place":     {"uniform", "one", "hopping", "least", "zipf:1.1", "zipf:nan", "zipf:-1", "zipf:"},
		"scenes":    {"2m 0.5x uniform aside, 1m 50/s one", "1m", "1m 1x", "1m nanx one", "1m -5/s one", ",", "1m 1x one aside aside", "0s 1x one"},
		"refunds":   {"0.2:3s", "", "NaN:1s", "0.2", "1e-300:1h", "0x1p-2:1ms"},
		"charges":   {"0.02:3s:1.5", "", "0.02:3s", "0.02:3s:Inf", "1:1ms:1e-9"},
		"store":     {"memory", "mini", "", "x"},
		"zipf":      {"0.99", "nan", "-1", "1e999"},
		"span":      {"1s", "-1s", "1e99h", "9999999h"},
	} {
		for _, text := range texts {
			f.Add(name, text)
		}
	}
	f.Fuzz(func(t *testing.T, name, text string) {
		var e, again Experiment
		fs, fs2 := flag.NewFlagSet("", flag.ContinueOnError), flag.NewFlagSet("", flag.ContinueOnError)
		fs.SetOutput(io.Discard)
		e.Bind(fs)
		again.Bind(fs2)
		if fs.Lookup(name) == nil || fs.Set(name, text) != nil {
			return
		}
		written := fs.Lookup(name).Value.String()
		if written == "" {
			return // the default
		}
		if err := fs2.Set(name, written); err != nil {
			t.Fatalf("-%s=%q is written as %q: %v", name, text, written, err)
		}
		if rewritten := fs2.Lookup(name).Value.String(); rewritten != written && written != "NaN" {
			t.Fatalf("-%s=%q is written as %q, and that as %q", name, text, written, rewritten)
		}
		if e.Load == 0 {
			e.Load = 1
		}
		if e.Validate() == nil && e.Command() == "" {
			t.Fatal("no command")
		}
	})
}
