package hybridrls

import (
	"context"
	"crypto/sha256"
	"time"
)

// Watch keeps the rules those of a file, until ctx ends. It reads the file every
// so often (0 means every second), which works on any file system and through the
// links of a Kubernetes volume, and takes what it has read twice in a row, so that
// no half of a file is taken. What is wrong with a file is logged once, with its
// line, and counted; the rules before it stay.
func (s *Server) Watch(ctx context.Context, path string, every time.Duration) {
	if every <= 0 {
		every = time.Second
	}
	w := &watch{server: s, path: path}
	s.mu.RLock()
	w.done = s.sum
	s.mu.RUnlock()
	ticks := time.NewTicker(every)
	defer ticks.Stop()
	for {
		select {
		case <-ticks.C:
			w.look()
		case <-ctx.Done():
			return
		}
	}
}

// watch is what Watch remembers of a file.
type watch struct {
	server *Server
	path   string

	done    [sha256.Size]byte // the text that was dealt with last
	pending [sha256.Size]byte // the text that was read last
	problem string            // of reading it, that was logged last
}

func (w *watch) look() {
	text, err := readText(w.path)
	if err != nil {
		w.unreadable(err)
		return
	}
	w.problem = ""
	sum := sha256.Sum256(text)
	settled := sum == w.pending
	w.pending = sum
	if sum == w.done || !settled {
		return
	}
	w.done = sum
	w.take(text)
}

func (w *watch) unreadable(err error) {
	w.pending = [sha256.Size]byte{}
	if s := err.Error(); s != w.problem {
		w.problem = s
		w.bad(err)
	}
}

func (w *watch) take(text []byte) {
	rules, err := Parse(text)
	if err == nil {
		err = w.server.SetRules(rules)
	}
	if err != nil {
		w.bad(err)
		return
	}
	w.server.counters.reloads.Add(1)
	w.server.logger.Info("hybridrls: new rules are in force", "file", w.path, "rules", rules.Len())
}

func (w *watch) bad(err error) {
	w.server.counters.badFiles.Add(1)
	w.server.logger.Error("hybridrls: the file is not used, the rules stay as they are", "file", w.path, "error", err)
}
