// Package journal writes log lines to a slog.Handler that is not trusted: from a goroutine of its
// own, so that one which panics or blocks holds up nobody.
package journal

import (
	"context"
	"log/slog"
	"sync/atomic"
	"time"
)

// Journal is where a node's log lines go: to the user's slog.Handler, from a
// goroutine of its own. A handler that panics or blocks costs lines, which are
// counted, and holds up neither requests nor the node.
type Journal struct {
	to    slog.Handler
	queue chan entry
	done  chan struct{}
	lost  atomic.Uint64
}

// entry is a record, and what is yet to be asked of user code about it.
type entry struct {
	to     slog.Handler
	record slog.Record
	key    func() string // nil: the line names no key
}

const mostEntries = 64

// New starts a journal of a handler.
func New(to slog.Handler) *Journal {
	j := &Journal{to: to, queue: make(chan entry, mostEntries), done: make(chan struct{})}
	go j.run()
	return j
}

// Lost is how many lines were not written.
func (j *Journal) Lost() uint64 { return j.lost.Load() }

// Logger returns a Logger that writes to the journal.
func (j *Journal) Logger() *slog.Logger { return slog.New(handler{journal: j, to: j.to}) }

// WarnOf is Warn of a line that is about one key, which is named as the user's
// formatter shows it; nil: not at all.
func (j *Journal) WarnOf(key func() string, msg string, args ...any) {
	r := slog.NewRecord(time.Now(), slog.LevelWarn, msg, 0)
	r.Add(args...)
	j.add(entry{to: j.to, record: r, key: key})
}

// add queues a line. It never blocks.
func (j *Journal) add(e entry) {
	select {
	case j.queue <- e:
	default:
		j.lost.Add(1)
	}
}

func (j *Journal) run() {
	for {
		select {
		case e := <-j.queue:
			j.write(e)
		case <-j.done:
			j.finish()
			return
		}
	}
}

// finish writes what was said before the end.
func (j *Journal) finish() {
	for {
		select {
		case e := <-j.queue:
			j.write(e)
		default:
			return
		}
	}
}

func (j *Journal) write(e entry) {
	defer func() {
		if recover() != nil {
			j.lost.Add(1)
		}
	}()
	ctx := context.Background()
	if !e.to.Enabled(ctx, e.record.Level) {
		return
	}
	r := slog.NewRecord(e.record.Time, e.record.Level, e.record.Message, e.record.PC)
	e.record.Attrs(func(a slog.Attr) bool {
		r.AddAttrs(slog.Attr{Key: a.Key, Value: a.Value.Resolve()}) // a handler might print what is in it
		return true
	})
	if e.key != nil {
		r.AddAttrs(slog.String("key", e.name()))
	}
	if e.to.Handle(ctx, r) != nil {
		j.lost.Add(1)
	}
}

// name returns what LogKey makes of a key. What it panics with may be the key.
func (e *entry) name() (text string) {
	defer func() {
		if recover() != nil {
			text = "(LogKey panicked)"
		}
	}()
	return e.key()
}

// Stop ends the goroutine once all lines are written. A handler that never
// returns is left behind.
func (j *Journal) Stop() { close(j.done) }

// handler is the slog.Handler in front of the user's, whose lines it writes
// in the journal.
type handler struct {
	journal *Journal
	to      slog.Handler
}

// Enabled leaves the question to the journal.
func (h handler) Enabled(context.Context, slog.Level) bool { return true }

func (h handler) Handle(_ context.Context, r slog.Record) error {
	h.journal.add(entry{to: h.to, record: r})
	return nil
}

func (h handler) WithAttrs(attrs []slog.Attr) slog.Handler {
	h.to = h.to.WithAttrs(attrs)
	return h
}

func (h handler) WithGroup(name string) slog.Handler {
	h.to = h.to.WithGroup(name)
	return h
}
