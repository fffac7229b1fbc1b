package flame

import (
	"cmp"
	"slices"
	"strings"
)

// Lock is the part of a profile that goes into taking, handing over and waiting for the
// locks that one function takes.
type Lock struct {
	Holder string  // the function that takes or gives back the lock
	Kind   string  // of lock
	Value  int64   // in the profile's unit
	Share  float64 // of all samples
}

// lockKinds are the functions that take and release locks, by what their names begin
// with. What they call is theirs too. A futex that is no lock's only parks a thread that
// has nothing to do.
var lockKinds = []struct{ prefix, kind string }{
	{"sync.(*Mutex).", "mutex"},
	{"internal/sync.(*Mutex).", "mutex"},
	{"sync.(*RWMutex).", "mutex for readers and writers"},
	{"runtime.(*rwmutex).", "mutex for readers and writers"},
	{"internal/poll.(*fdMutex).", "lock of a connection"},
	{"internal/poll.runtime_Sem", "lock of a connection"},
	{"sync.runtime_Sem", "semaphore"},
	{"internal/sync.runtime_Sem", "semaphore"},
	{"runtime.sync_runtime_Sem", "semaphore"},
	{"runtime.semacquire", "semaphore"},
	{"runtime.semrelease", "semaphore"},
	{"runtime.(*semaRoot).", "semaphore"},
	{"runtime.lock", "runtime's own"},
	{"runtime.unlock", "runtime's own"},
}

// lockKind is the kind of lock that a function is part of, or "".
func lockKind(name string) string {
	for _, l := range lockKinds {
		if strings.HasPrefix(name, l.prefix) {
			return l.kind
		}
	}
	return ""
}

// Locks lists what goes into locks, by holder, the most expensive first.
func (p *Profile) Locks() (locks []Lock) {
	type place struct{ holder, kind string }
	sum := make(map[place]int64)
	for _, s := range p.samples {
		i := innermostLock(s.stack)
		if i < 0 {
			continue
		}
		holder := "(unknown)"
		if i > 0 {
			holder = short(s.stack[i-1])
		}
		sum[place{holder, lockKind(s.stack[i])}] += s.value
	}
	for at, value := range sum {
		locks = append(locks, Lock{at.holder, at.kind, value, float64(value) / float64(max(p.total, 1))})
	}
	slices.SortFunc(locks, func(a, b Lock) int {
		return cmp.Or(cmp.Compare(b.Value, a.Value), cmp.Compare(a.Holder, b.Holder), cmp.Compare(a.Kind, b.Kind))
	})
	return locks
}

// innermostLock is where the innermost lock of a stack is called, or −1.
func innermostLock(stack []string) int {
	i := len(stack) - 1
	for i >= 0 && lockKind(stack[i]) == "" {
		i--
	}
	for i > 0 && lockKind(stack[i-1]) != "" {
		i--
	}
	return i
}
