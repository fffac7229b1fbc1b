package main

import (
	"bytes"
	"fmt"
	"strings"
	"testing"
)

// The command that the README names first, as a test: it keeps its bound, says
// all that it promises to say, and writes no escape code into a pipe.
func TestQuickstart(t *testing.T) {
	var out bytes.Buffer
	if err := run(&out); err != nil {
		t.Fatalf("%v\n%s", err, out.String())
	}
	text := out.String()
	t.Log("\n" + text)
	for _, want := range []string{"offered", "total", "limit", "one perfect node", "bound", "per request", "retry after"} {
		if !strings.Contains(text, want) {
			t.Errorf("the output lacks %q", want)
		}
	}
	if strings.ContainsAny(text, "\r\033") {
		t.Error("the output holds control codes, though it is no terminal")
	}

	_, rest, _ := strings.Cut(text, "total")
	var offered, admitted, denied, operations int
	if _, err := fmt.Sscan(rest, &offered, &admitted, &denied, &operations); err != nil {
		t.Fatal(err)
	}
	if offered != requests || admitted+denied != offered {
		t.Errorf("%d offered, %d admitted, %d denied", offered, admitted, denied)
	}
	// An ideal limiter admits 100 and what refills in 3 s. Fewer than 98 would
	// mean that tokens are stuck somewhere.
	if admitted < 98 {
		t.Errorf("only %d admitted of a burst of 100", admitted)
	}
	if operations > offered {
		t.Errorf("%d Redis operations for %d requests", operations, offered)
	}
}
