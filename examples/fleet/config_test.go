package main

import (
	"io"
	"strings"
	"testing"
	"time"

	"github.com/hybridlimit/hybrid"
)

func TestFlags(t *testing.T) {
	c, err := parseFlags(strings.Fields("-nodes 3 -rate 100 -keys 7 -zipf 1.2 -limit 50/10s -seconds 1.5 -procs -accuracy within(0.1,0.05)"), io.Discard)
	if err != nil {
		t.Fatal(err)
	}
	if c.Nodes != 3 || c.Limit != (quota{50, 10 * time.Second}) || !c.Procs || c.Accuracy != dial(hybrid.Within(0.1, 0.05)) {
		t.Errorf("got %+v", c)
	}
	if c, err = parseFlags([]string{"-precheck=off"}, io.Discard); err != nil || c.Accuracy != dial(hybrid.Exact) {
		t.Errorf("-precheck=off: got %+v, %v", c, err)
	}
}

// A wrong value is told with its flag, itself and what is allowed.
func TestWrongFlags(t *testing.T) {
	for args, want := range map[string]string{
		"-nodes 0":                     `"0" for flag -nodes: allowed 1 to 1000`,
		"-nodes two":                   `"two" for flag -nodes: allowed 1 to 1000`,
		"-rate -5":                     `"-5" for flag -rate: allowed 1 to 10000000`,
		"-keys 1e6":                    `"1e6" for flag -keys: allowed 1 to 100000000`,
		"-zipf NaN":                    `"NaN" for flag -zipf: allowed 0 to 5`,
		"-limit 1000":                  `"1000" for flag -limit: allowed COUNT/PERIOD`,
		"-limit 0/min":                 `"0/min" for flag -limit: allowed COUNT/PERIOD`,
		"-limit 5/fortnight":           `"5/fortnight" for flag -limit: allowed COUNT/PERIOD`,
		"-seconds 0":                   `"0" for flag -seconds: allowed 0.1 to 3600`,
		"-warmup 2h":                   `"2h" for flag -warmup: allowed 0s to 1h0m0s`,
		"-timeout 1us":                 `"1us" for flag -timeout: allowed 1ms to 10s`,
		"-accuracy fair":               `"fair" for flag -accuracy: allowed balanced, strict, exact`,
		"-accuracy within(2,0)":        `"within(2,0)" for flag -accuracy: allowed`,
		"-precheck=no":                 `"no" for flag -precheck: allowed on or off`,
		"-rate 10000000 -seconds 3600": `allowed 50000000`,
		"-speed 5":                     `-speed`,
		"nodes":                        `"nodes"`,
	} {
		_, err := parseFlags(strings.Fields(args), io.Discard)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, want %s", args, err, want)
		}
	}
}
