package hybrid

import (
	"context"
	"log/slog"
	"sync/atomic"
	"time"
)

// journal is where a node's log lines go: to the user's slog.Handler, from a
// goroutine of its own. A handler that panics or blocks costs lines, which are
// counted, and holds up neither requests nor the node.
type journal struct {
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

func newJournal(to slog.Handler) *journal {
	j := &journal{to: to, queue: make(chan entry, mostEntries), done: make(chan struct{})}
	go j.run()
	return j
}

// logger returns a Logger that writes to the journal.
func (j *journal) logger() *slog.Logger { return slog.New(journalHandler{journal: j, to: j.to}) }

// warnOf is Warn of a line that is about one key, which is named as the user's
// formatter shows it; nil: not at all.
func (j *journal) warnOf(key func() string, msg string, args ...any) {
	r := slog.NewRecord(time.Now(), slog.LevelWarn, msg, 0)
	r.Add(args...)
	j.add(entry{to: j.to, record: r, key: key})
}

// add queues a line. It never blocks.
func (j *journal) add(e entry) {
	select {
	case j.queue <- e:
	default:
		j.lost.Add(1)
	}
}

func (j *journal) run() {
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
func (j *journal) finish() {
	for {
		select {
		case e := <-j.queue:
			j.write(e)
		default:
			return
		}
	}
}

func (j *journal) write(e entry) {
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

// causeValue is the cause of an error in a line. It is found in the journal:
// errors may come from user code, and so may their text.
type causeValue struct{ err error }

// LogValue implements slog.LogValuer.
func (c causeValue) LogValue() slog.Value { return slog.StringValue(causeOf(c.err)) }

// name returns what LogKey makes of a key. What it panics with may be the key.
func (e *entry) name() (text string) {
	defer func() {
		if recover() != nil {
			text = "(LogKey panicked)"
		}
	}()
	return e.key()
}

// stop ends the goroutine once all lines are written. A handler that never
// returns is left behind.
func (j *journal) stop() { close(j.done) }

// journalHandler is the slog.Handler in front of the user's, whose lines it writes
// in the journal.
type journalHandler struct {
	journal *journal
	to      slog.Handler
}

// Enabled leaves the question to the journal.
func (h journalHandler) Enabled(context.Context, slog.Level) bool { return true }

func (h journalHandler) Handle(_ context.Context, r slog.Record) error {
	h.journal.add(entry{to: h.to, record: r})
	return nil
}

func (h journalHandler) WithAttrs(attrs []slog.Attr) slog.Handler {
	h.to = h.to.WithAttrs(attrs)
	return h
}

func (h journalHandler) WithGroup(name string) slog.Handler {
	h.to = h.to.WithGroup(name)
	return h
}
