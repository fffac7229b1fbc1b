package sim

import (
	"flag"
	"io"
	"strings"
	"testing"
)

// Flags that make no sense are told by name and value, with what is allowed. None
// of them may start a run: some would never end.
func TestValidate(t *testing.T) {
	for line, want := range map[string]string{
		"-load NaN":                                 "load: NaN, allowed 0 to",
		"-load Inf":                                 "load: +Inf, allowed 0 to",
		"-load -1":                                  "load: -1, allowed 0 to",
		"-load 0":                                   "load 0, rate 0",
		"-rate NaN":                                 "rate: NaN, allowed 0 to",
		"-load 1 -sample NaN":                       "sample: NaN, allowed 0 to",
		"-load 1 -zipf NaN":                         "zipf: NaN, allowed 0 to 5",
		"-load 1 -fills NaN":                        "fills: NaN, allowed",
		"-load 1 -fills -1":                         "fills: -1, allowed",
		"-load 1 -sync -1s":                         "sync: -1s, allowed 1ms to 10s",
		"-load 1 -timeout -1s":                      "timeout: -1s, allowed 1ms to 10s",
		"-load 1 -servers -1":                       "servers: -1, allowed 0 to 100000",
		"-load 1 -nodes -3":                         "nodes: -3, allowed 1 to 1000",
		"-load 1 -nodes 1001":                       "nodes: 1001, allowed 1 to 1000",
		"-load 1 -cost -1":                          "cost: -1, allowed 1 to",
		"-load 1 -warm -1s":                         "warm: -1s, allowed 0s to",
		"-load 1 -span -1s":                         "span: -1s, allowed 1ns to",
		"-rate 1e8 -span 1h":                        "3.66e+11 requests in warm 1m5s and span 1h0m0s, allowed 0 to 1e+09",
		"-scenes 1s_Infx_one":                       "scenes: +Inf, allowed 0 to",
		"-scenes 1ns_1x_one":                        "scenes and fill times in span: ",
		"-load 1 -span 1m -faults crash:0@9h":       "faults: crash:0@9h0m0s, allowed until the run ends at 2m5s",
		"-load 1 -span 1m -faults pause:0@2m+6s":    "faults: pause:0@2m0s+6s, allowed until the run ends at 2m5s",
		"-load 1 -span 1m -faults wipe@1s+2540000h": "faults: wipe@1s+2540000h0m0s, allowed until",
		"-load 1 -span 1m -faults pause:0@2m+5s":    "",
		"-load 1.4":                                 "",
		"-scenes 20s_0.5x_uniform,110s_0x_uniform -span 400s -faults hole:0@25s": "",
	} {
		var e Experiment
		fs := flag.NewFlagSet("", flag.ContinueOnError)
		fs.SetOutput(io.Discard)
		e.Bind(fs)
		args := strings.Fields(line)
		for i := range args {
			args[i] = strings.ReplaceAll(args[i], "_", " ")
		}
		err := fs.Parse(args)
		if err == nil {
			err = e.Validate()
		}
		if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", line, err, want)
		}
	}
}

// What tests and tables run may be repeated from the command line.
func TestEverythingIsValid(t *testing.T) {
	for seed := range uint64(300) {
		if err := Mix(seed).Validate(); err != nil {
			t.Errorf("seed %d: %v", seed, err)
		}
	}
	for _, r := range append(Rows(), ServiceRows()...) {
		if err := r.Experiment.Validate(); err != nil {
			t.Errorf("%s: %v", r.Name, err)
		}
	}
}
