package slice

import (
	"sync"
	"sync/atomic"
)

// fake is the least that a table can hold.
type fake struct {
	key     string
	t       *Table[*fake]
	touched atomic.Bool
	cell    Cell

	mu      sync.Mutex
	holds   bool // remembers something
	flying  bool // a settle is in flight
	retired bool
}

func (f *fake) Key() string   { return f.key }
func (f *fake) Touched() bool { return f.touched.Swap(false) }
func (f *fake) Unlink()       { f.t.Remove(f) }

func (f *fake) Retire(force bool) bool {
	if !f.mu.TryLock() {
		return false
	}
	defer f.mu.Unlock()
	if !f.retired {
		f.retired = !f.flying && (force || !f.holds)
	}
	return f.retired
}

func (f *fake) set(change func(*fake)) {
	f.mu.Lock()
	defer f.mu.Unlock()
	change(f)
}
