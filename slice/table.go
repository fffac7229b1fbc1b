package slice

// Entry is what a [Table] needs of its values, which are pointers.
type Entry interface {
	comparable

	// Key returns the key in the table. It never changes.
	Key() string

	// Touched reports whether the entry was used since the last call of
	// Touched. The use that an entry is made for does not count, so that keys
	// that are used once do not push out those that are used again.
	Touched() bool

	// Retire takes the entry out of use, under the entry's own lock, and
	// reports whether it did: without force only if the entry remembers
	// nothing, with force unless a settle is in flight. Nobody makes a new
	// decision with a retired entry. Retiring it once more reports true.
	//
	// The ring's lock is held, so Retire must not wait: an entry whose lock is
	// taken is in use and reports false.
	Retire(force bool) bool

	// Unlink removes the entry from its Table with [Table.Remove]. It may be
	// called more than once.
	Unlink()
}

// Table is the entries of one limiter by key. The number of entries in all the
// tables of a node is bounded by the [Ring] that they share.
//
// Order of locks: the ring's, then an entry's own, then a bucket of the map.
// No entry is ever called while a bucket is locked.
type Table[E Entry] struct {
	m    keyMap[E]
	ring *Ring[E]
}

// NewTable returns an empty table whose entries are counted by ring.
func NewTable[E Entry](ring *Ring[E]) *Table[E] {
	return &Table[E]{ring: ring}
}

// Load returns the entry of a key. It takes no lock and allocates nothing.
func (t *Table[E]) Load(key string) (E, bool) { return t.m.get(key) }

// LoadOrMake returns the entry of a key, and stores a fresh one if there is
// none. All callers who race for one key get the same entry.
//
// When the ring is full, another entry leaves for it. If that entry remembered
// something it is returned in evicted, so that the caller can give its slice
// back to the store. If none could leave, the fresh entry is returned and
// stored is false: use it for one decision and drop it. It must have no floor,
// or each of its kind would bring the floor of the key once more.
//
// The function fresh is called without a lock, before the entry is stored, and
// its result is dropped if another caller was first. What it reads of shared
// state may be out of date when the entry is stored: an entry of the same key
// may have come and gone in between.
func (t *Table[E]) LoadOrMake(key string, fresh func() E) (e E, evicted []E, stored bool) {
	if e, ok := t.m.get(key); ok {
		return e, nil, true
	}
	return t.ring.admit(t, key, fresh())
}

// Remove removes e, if it is what is stored under its key.
func (t *Table[E]) Remove(e E) { t.m.drop(e.Key(), e) }

// Range calls f for the entries until it returns false. Entries that come or go
// meanwhile may or may not be seen. No lock is held while f runs.
func (t *Table[E]) Range(f func(E) bool) { t.m.each(f) }

// Len returns the number of entries.
func (t *Table[E]) Len() int { return t.m.len() }
