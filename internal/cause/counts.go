package cause

import (
	"maps"
	"sync"
)

// Reader finds out what errors mean. They come from user code, a Dialer or a hook of
// the client, and so may their text: they are read by a goroutine that runs while there
// are any, and nobody waits for it.
type Reader struct {
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

// Read lets the cause of an error be told, soon, without a lock held; false if too many
// wait for theirs. It never blocks.
func (c *Reader) Read(err error, then func(cause string)) bool {
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

func (c *Reader) run() {
	for {
		next := c.take()
		if next == nil {
			return
		}
		for _, u := range next {
			u.then(Of(u.err))
		}
	}
}

// take returns what has come; nil ends the goroutine.
func (c *Reader) take() []unread {
	c.mu.Lock()
	defer c.mu.Unlock()
	next := c.unread
	c.unread, c.reading = nil, len(next) > 0
	return next
}

// Counts is how many errors there were, by cause.
type Counts struct {
	reader *Reader

	mu     sync.Mutex
	counts map[string]uint64
}

// mostCauses bounds them: replies have few codes and errors few types, but nobody who
// keeps a time series for each should have to believe that.
const mostCauses = 32

// NewCounts counts errors that a reader reads.
func NewCounts(r *Reader) *Counts { return &Counts{reader: r, counts: make(map[string]uint64)} }

// Add counts an error. It never blocks.
func (f *Counts) Add(err error) {
	if !f.reader.Read(err, f.count) {
		f.count(Other)
	}
}

func (f *Counts) count(cause string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if _, known := f.counts[cause]; !known && len(f.counts) >= mostCauses {
		cause = Other
	}
	f.counts[cause]++
}

// ByCause returns a copy of the counts.
func (f *Counts) ByCause() map[string]uint64 {
	f.mu.Lock()
	defer f.mu.Unlock()
	return maps.Clone(f.counts)
}
