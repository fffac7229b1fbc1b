package hybridrls

import (
	"bytes"
	"context"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"
)

// syncBuffer is a log that may be read while it is written.
type syncBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (s *syncBuffer) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.Write(p)
}

func (s *syncBuffer) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.String()
}

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// eventually waits for what another goroutine brings about.
func eventually(t *testing.T, what string, is func() bool) {
	t.Helper()
	for end := time.Now().Add(20 * time.Second); !is(); time.Sleep(2 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("in 20 s it did not come true that %s", what)
		}
	}
}

// A changed file is taken, through links as a Kubernetes volume has them; a bad one
// is not, and the log says in which line it is bad, once.
func TestWatch(t *testing.T) {
	log := &syncBuffer{}
	first, second := oneRule("limit: 10/h, accuracy: exact"), oneRule("limit: 20/h, accuracy: exact")
	g := newGateway(t, first, &Options{Logger: slog.New(slog.NewTextHandler(log, nil))})
	dir := t.TempDir()
	path := filepath.Join(dir, "rules.yaml")
	v1, v2 := filepath.Join(dir, "v1.yaml"), filepath.Join(dir, "v2.yaml")
	write(t, v1, first)
	write(t, v2, second)
	if err := os.Symlink(v1, path); err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() { g.server.Watch(ctx, path, 2*time.Millisecond); close(ended) }()
	defer func() { stop(); <-ended }()

	g.want(ok, 4, d("user=alice"))
	link := filepath.Join(dir, "link")
	if err := os.Symlink(v2, link); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(link, path); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the second file is in force", func() bool { return g.server.Stats().Reloads == 1 })
	if left := g.left(d("user=alice")); left != 16 {
		t.Errorf("%d left of 20 after 4", left)
	}

	write(t, v2, oneRule("limit: 30/hr, accuracy: exact"))
	eventually(t, "the bad file is seen", func() bool { return g.server.Stats().BadFiles == 1 })
	if err := os.Remove(v2); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the missing file is seen", func() bool { return g.server.Stats().BadFiles == 2 })
	time.Sleep(20 * time.Millisecond) // some more looks at what is no news
	if left := g.left(d("user=alice")); left != 16 {
		t.Errorf("%d left: the old rules do not hold any more", left)
	}
	write(t, v2, oneRule("limit: 30/h, accuracy: exact"))
	eventually(t, "the corrected file is in force", func() bool { return g.server.Stats().Reloads == 2 })
	if left := g.left(d("user=alice")); left != 26 {
		t.Errorf("%d left of 30 after 4", left)
	}
	if st := g.server.Stats(); st.BadFiles != 2 || st.Reloads != 2 {
		t.Errorf("%+v: want each bad file counted once", st)
	}
	if n := strings.Count(log.String(), "line 3: rules[0].limit"); n != 1 {
		t.Errorf("the log names the bad line %d times, want once:\n%s", n, log)
	}
}

// Half of a file, as an editor may leave it for a moment, can be rules too. It is
// not taken: what is taken has been read twice.
func TestHalfAFileIsNotTaken(t *testing.T) {
	whole := oneRule("limit: 10/h, accuracy: exact") + "- {name: route, match: [{key: route}], limit: 1/h, accuracy: exact}\n"
	half := oneRule("limit: 10/h, accuracy: exact")
	g := newGateway(t, oneRule("limit: 10/h, accuracy: exact, on_failure: closed"), nil)
	path := filepath.Join(t.TempDir(), "rules.yaml")
	w := &watch{server: g.server, path: path, done: g.server.sum}
	for _, step := range []struct {
		text    string
		reloads uint64
		rules   int
	}{
		{half, 0, 1}, {whole, 0, 1}, {half, 0, 1}, {whole, 0, 1}, {whole, 1, 2}, {whole, 1, 2}, {half, 1, 2}, {half, 2, 1},
	} {
		write(t, path, step.text)
		w.look()
		if st := g.server.Stats(); st.Reloads != step.reloads || st.Rules != step.rules || st.BadFiles != 0 {
			t.Fatalf("%+v after %+v", st, step)
		}
	}
}
