package main

import (
	"io"
	"strings"
	"testing"
	"time"
)

func TestFlags(t *testing.T) {
	j, err := parse(strings.Fields("-nodes 3 -rate 500 -limit 50/10s -seconds 1.5 -only control -profile cpu.pb.gz"), io.Discard)
	if err != nil {
		t.Fatal(err)
	}
	if j.Nodes != 3 || j.Rate != 500 || j.Limit != 50 || j.Period != 10*time.Second || !j.Only.MatchString("control") || j.Only.MatchString("hybrid, Exact") || j.Measured != 1500*time.Millisecond {
		t.Errorf("got %+v", j)
	}
	if j.Profiled != j.Measured {
		t.Errorf("%v are profiled, want as much as measured", j.Profiled)
	}
	if j, err = parse(nil, io.Discard); err != nil || j.Limit != 1000 || j.Period != time.Minute || j.Profiled != 0 {
		t.Errorf("without flags: %+v, %v", j, err)
	}
}

func TestWrongFlags(t *testing.T) {
	for args, want := range map[string]string{
		"-nodes 0":         "allowed 1 to 200",
		"-nodes 201":       "allowed 1 to 200",
		"-rate 5":          "allowed 100 to 1000000",
		"-compare-rate -1": "allowed 0 to 1000000",
		"-keys 0":          "allowed 1 to 100000000",
		"-zipf NaN":        "allowed 0 to 5",
		"-limit 1000":      "allowed as PERIOD",
		"-limit x/min":     "allowed COUNT/PERIOD",
		"-seconds 0":       "allowed 0.1 to 3600",
		"-warmup 2h":       "allowed 0s to 1h",
		"-only (":          "missing closing",
		"more":             "only flags are allowed",
	} {
		if _, err := parse(strings.Fields(args), io.Discard); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", args, err, want)
		}
	}
}
