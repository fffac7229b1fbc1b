package slice

// chunk is the number of slots that are allocated at once: few enough that no
// caller waits for a large allocation, and nothing is ever copied to grow.
const chunk = 4096

// slots is a dense array that grows by chunks and keeps the ones it has. One
// slot is one pointer.
type slots[E any] struct {
	chunks []*[chunk]E
	n      int
}

func (s *slots[E]) slot(i int) *E { return &s.chunks[i/chunk][i%chunk] }
func (s *slots[E]) at(i int) E    { return *s.slot(i) }

func (s *slots[E]) push(e E) {
	if s.n == len(s.chunks)*chunk {
		s.chunks = append(s.chunks, new([chunk]E))
	}
	s.n++
	*s.slot(s.n - 1) = e
}

// swap puts e into slot i and returns what was there.
func (s *slots[E]) swap(i int, e E) (old E) {
	p := s.slot(i)
	old, *p = *p, e
	return old
}

// remove frees slot i by moving the last entry into it.
func (s *slots[E]) remove(i int) {
	var none E
	s.n--
	last := s.swap(s.n, none)
	if i != s.n {
		*s.slot(i) = last
	}
}
