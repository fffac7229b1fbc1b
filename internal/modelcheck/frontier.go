package modelcheck

// frontier is the worlds from which to go on. It grows by chunks, which are
// freed as they have been visited: there may be millions.
type frontier struct {
	chunks [][]reached
	n      int
}

const chunk = 1024

type reached struct {
	world World
	id    int32
}

func (f *frontier) push(w World, id int32) {
	if f.n%chunk == 0 {
		f.chunks = append(f.chunks, make([]reached, 0, chunk))
	}
	last := &f.chunks[len(f.chunks)-1]
	*last = append(*last, reached{w, id})
	f.n++
}

// all visits the worlds once, and empties the frontier.
func (f *frontier) all(yield func(*World, int32) bool) {
	for i := range f.chunks {
		for j := range f.chunks[i] {
			if r := &f.chunks[i][j]; !yield(&r.world, r.id) {
				return
			}
		}
		f.chunks[i] = nil
	}
}
