package debugui

import (
	"context"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
)

// browser is a headless Chromium, gone with its test.
type browser struct {
	t   *testing.T
	ctx context.Context

	mu       sync.Mutex
	errors   []string // on the console
	requests []string // URLs
}

// openBrowser starts Chromium. Without one, the test is skipped; if
// HYBRID_REQUIRE_BROWSER=1, it fails.
func openBrowser(t *testing.T, width, height int) *browser {
	t.Helper()
	b := &browser{t: t}
	opts := append(chromedp.DefaultExecAllocatorOptions[:],
		chromedp.ExecPath(findBrowser(t)), chromedp.DisableGPU, chromedp.WindowSize(width, height),
		// chromedp adds --no-sandbox where it must: as root.
	)
	ctx, kill := chromedp.NewExecAllocator(context.Background(), opts...)
	b.ctx, _ = chromedp.NewContext(ctx, chromedp.WithListener(b.heard))
	t.Cleanup(func() {
		_ = chromedp.Cancel(b.ctx) // waits until the process has ended
		kill()
	})
	b.do(chromedp.Steps())
	return b
}

func findBrowser(t *testing.T) string {
	t.Helper()
	for _, name := range []string{"chromium", "chromium-browser", "google-chrome", "chrome"} {
		if path, err := exec.LookPath(name); err == nil {
			return path
		}
	}
	if os.Getenv("HYBRID_REQUIRE_BROWSER") == "1" {
		t.Fatal("no chromium is on PATH, and HYBRID_REQUIRE_BROWSER=1")
	}
	t.Skip("no chromium is on PATH: install it (apt install chromium) to run this test")
	return ""
}

// heard notes what the tab complains of and what it asks for.
func (b *browser) heard(event any) {
	b.mu.Lock()
	defer b.mu.Unlock()
	switch e := event.(type) {
	case *runtime.EventConsoleAPICalled:
		for _, arg := range e.Args {
			b.errors = append(b.errors, string(e.Type)+": "+string(arg.Value))
		}
	case *runtime.EventExceptionThrown:
		text := e.ExceptionDetails.Text
		if x := e.ExceptionDetails.Exception; x != nil {
			text += " " + x.Description
		}
		b.errors = append(b.errors, text)
	case *log.EventEntryAdded:
		b.errors = append(b.errors, string(e.Entry.Level)+": "+e.Entry.Text)
	case *network.EventRequestWillBeSent:
		b.requests = append(b.requests, e.Request.URL)
	}
}

// console is what was complained of so far.
func (b *browser) console() []string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return slices.Clone(b.errors)
}

// requested is the URLs that were asked for so far.
func (b *browser) requested() []string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return slices.Clone(b.requests)
}

// patience is how long a browser on a busy machine gets for one thing.
const patience = 20 * time.Second

func (b *browser) do(a chromedp.Action[chromedp.Void]) {
	b.t.Helper()
	run(b, a)
}

func run[T any](b *browser, a chromedp.Action[T]) T {
	b.t.Helper()
	type outcome struct {
		value T
		err   error
	}
	done := make(chan outcome, 1)
	go func() {
		value, err := chromedp.Run(b.ctx, a)
		done <- outcome{value, err}
	}()
	select {
	case o := <-done:
		if o.err != nil {
			b.t.Fatalf("the browser: %v; its console: %q", o.err, b.console())
		}
		return o.value
	case <-time.After(patience):
		b.t.Fatalf("the browser does not answer; its console: %q", b.console())
		panic("unreachable")
	}
}

// eval is the value of an expression.
func eval[T any](b *browser, expression string) T {
	b.t.Helper()
	return run(b, chromedp.Evaluate[T](expression))
}

// runs executes statements, whatever their value.
func runs(statements string) chromedp.Action[chromedp.Void] {
	return chromedp.Func(func(ctx context.Context, tab *chromedp.Target) error {
		_, err := chromedp.Evaluate[bool]("(() => { "+statements+"; return true })()")(ctx, tab)
		return err
	})
}

// want waits until an expression is true.
func (b *browser) want(what, expression string) {
	b.t.Helper()
	for end := time.Now().Add(patience); !eval[bool](b, "!!("+expression+")"); time.Sleep(30 * time.Millisecond) {
		if time.Now().After(end) {
			b.t.Fatalf("not within %v: %s; the page says: %s; its console: %q", patience, what, b.text("body"), b.console())
		}
	}
}

// text is what is to be read in an element.
func (b *browser) text(selector string) string {
	b.t.Helper()
	return strings.TrimSpace(eval[string](b, "document.querySelector("+quoted(selector)+").innerText"))
}

// wantText waits until an element holds a text.
func (b *browser) wantText(selector, text string) {
	b.t.Helper()
	b.want(selector+" says "+text, "document.querySelector("+quoted(selector)+")?.innerText.includes("+quoted(text)+")")
}

// scheme prefers light or dark.
func (b *browser) scheme(name string) {
	b.t.Helper()
	b.do(chromedp.Func(func(ctx context.Context, tab *chromedp.Target) error {
		_, err := cdp.Call(ctx, tab, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{
			Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: name}},
		})
		return err
	}))
}

// quoted is a text as JavaScript writes it.
func quoted(text string) string {
	return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`, "\n", `\n`).Replace(text) + `"`
}
