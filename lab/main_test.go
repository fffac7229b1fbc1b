package main

import (
	"strings"
	"testing"
)

// What would run nothing, or cannot be read, is an error: it must not look like a
// run in which all went well.
func TestNothingToRun(t *testing.T) {
	for line, want := range map[string]string{
		"table -only nomatch":     "no row matches",
		"table -fills NaN":        "fills: NaN, allowed",
		"table -span -1s":         "span: -1s, allowed",
		"faults -seeds 0":         "seeds: 0, allowed 1 to",
		"faults -seeds -1":        "seeds: -1, allowed 1 to",
		"run -load NaN":           "load: NaN, allowed",
		"scaling -only nowhere":   "no point matches",
		"scaling -only (":         "missing closing )",
		"scaling -quick -docs":    "it keeps nothing",
		"scaling -quick -missing": "it keeps nothing",
		"scaling -seed -1":        "-h lists the flags",
		"run -nonsense":           "-h lists the flags",
		"run -load 1 more":        `unexpected argument "more"`,
	} {
		args := strings.Fields(line)
		for _, c := range commands {
			if c.name != args[0] {
				continue
			}
			if err := c.run(t, args[1:]); err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("%s: %v, want %q", line, err, want)
			}
		}
	}
}

// The usage has a line for each command.
func TestUsage(t *testing.T) {
	for _, c := range commands {
		if !strings.Contains(usage(), "\n  "+c.name+" ") {
			t.Errorf("no %s in\n%s", c.name, usage())
		}
	}
}
