package main

import (
	"errors"
	"flag"
	"io"
	"testing"
)

func TestWrongFlagsAreRefused(t *testing.T) {
	for _, args := range [][]string{{"-rounds", "0"}, {"-sample", "-1"}, {"-memory", "x"}, {"-calls", "1e3"}, {"now"}, {"-unknown"}} {
		if err := run(t.Context(), args, io.Discard); err == nil {
			t.Errorf("%v: no error", args)
		}
	}
	if err := run(t.Context(), []string{"-h"}, io.Discard); !errors.Is(err, flag.ErrHelp) {
		t.Errorf("-h: %v", err)
	}
}
