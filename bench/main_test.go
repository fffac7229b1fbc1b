package main

import (
	"bytes"
	"errors"
	"flag"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/hybridlimit/hybrid/bench/measure"
	"github.com/hybridlimit/hybrid/bench/report"
)

func TestUsageListsTheCommands(t *testing.T) {
	var out bytes.Buffer
	if err := run(t.Context(), []string{"-h"}, &out); err != nil {
		t.Fatal(err)
	}
	for _, c := range commands {
		if !strings.Contains(out.String(), c.name+" ") {
			t.Errorf("no %q in\n%s", c.name, out.String())
		}
	}
}

func TestMisuseIsRefused(t *testing.T) {
	for _, args := range [][]string{{}, {"chart"}, {"table", "-rounds", "many"}, {"table", "extra"}, {"table", "-only", "speed"}, {"maps", "-keys", "1000"}} {
		var out bytes.Buffer
		if err := run(t.Context(), args, &out); err == nil || errors.Is(err, flag.ErrHelp) {
			t.Errorf("%q: got %v", args, err)
		}
	}
}

func TestFewKeysNeedFewSizes(t *testing.T) {
	for text, want := range map[string]int{"1": 1, "1024": 2, "65536": 2, "131072": 3} {
		var out bytes.Buffer
		c, err := parse("table", []string{"-keys", text}, &out)
		if err != nil {
			t.Fatal(err)
		}
		if len(c.Sizes) != want {
			t.Errorf("%s keys: sizes %v, want %d", text, c.Sizes, want)
		}
	}
}

// The one command that publishes, on a copy of the document.
func TestDocsFillTheDocument(t *testing.T) {
	if _, err := exec.LookPath("redis-server"); err != nil && os.Getenv("HYBRID_REQUIRE_REDIS") != "1" {
		t.Skip(err)
	}
	doc, err := os.ReadFile(filepath.Join("..", report.Document))
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "benchmarks.md")
	if err := os.WriteFile(path, doc, 0o600); err != nil {
		t.Fatal(err)
	}
	c := measure.Defaults()
	c.Only, c.Settle, c.Sizes, c.Round, c.Rounds = []string{"memory", "heap"}, 0, []int{1, 32}, time.Millisecond, 1
	if err := writeDocs(t.Context(), c, path); err != nil {
		t.Fatal(err)
	}
	got, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"### Decisions in memory", "### Memory", "### Maps", "| hybrid Strict |", "| sync.Map |"} {
		if !strings.Contains(string(got), want) {
			t.Errorf("no %q in the document", want)
		}
	}
}

func TestDocsWithoutADocumentMeasureNothing(t *testing.T) {
	if err := writeDocs(t.Context(), measure.Defaults(), filepath.Join(t.TempDir(), "none.md")); err == nil {
		t.Error("no error")
	}
}
