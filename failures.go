package hybrid

import (
	"maps"
	"sync"
)

// causes finds out what errors mean. They come from user code, a Dialer or a hook of
// the client, and so may their text: they are read by a goroutine that runs while there
// are any, and nobody waits for it.
type causes struct {
	mu      sync.Mutex
	unread  []unread
	reading bool
}

// unread is an error whose cause is not known yet, and who wants to know.
type unread struct {
	err  error
	then func(cause string)
}

const mostUnread = 1024

// read lets the cause of an error be told, soon, without a lock held; false if too many
// wait for theirs. It never blocks.
func (c *causes) read(err error, then func(cause string)) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.unread) >= mostUnread {
		return false
	}
	c.unread = append(c.unread, unread{err, then})
	if !c.reading {
		c.reading = true
		go c.run()
	}
	return true
}

func (c *causes) run() {
	for {
		next := c.take()
		if next == nil {
			return
		}
		for _, u := range next {
			u.then(safeCause(u.err))
		}
	}
}

// take returns what has come; nil ends the goroutine.
func (c *causes) take() []unread {
	c.mu.Lock()
	defer c.mu.Unlock()
	next := c.unread
	c.unread, c.reading = nil, len(next) > 0
	return next
}

// otherCause is that of an error that panics, that too many others came before, or that
// is one cause too many.
const otherCause = "other"

// safeCause is causeOf of an error that may be anybody's.
func safeCause(err error) (cause string) {
	defer func() {
		if recover() != nil {
			cause = otherCause
		}
	}()
	return causeOf(err)
}

// failures counts failed operations by cause.
type failures struct {
	causes *causes

	mu     sync.Mutex
	counts map[string]uint64
}

// mostCauses bounds them: replies have few codes and errors few types, but nobody who
// keeps a time series for each should have to believe that.
const mostCauses = 32

func newFailures(c *causes) *failures {
	return &failures{causes: c, counts: make(map[string]uint64)}
}

// add counts an error. It never blocks.
func (f *failures) add(err error) {
	if !f.causes.read(err, f.count) {
		f.count(otherCause)
	}
}

func (f *failures) count(cause string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if _, known := f.counts[cause]; !known && len(f.counts) >= mostCauses {
		cause = otherCause
	}
	f.counts[cause]++
}

// byCause returns a copy of the counts.
func (f *failures) byCause() map[string]uint64 {
	f.mu.Lock()
	defer f.mu.Unlock()
	return maps.Clone(f.counts)
}
