package sim

import (
	crand "crypto/rand"
	"encoding/binary"
	"io"
	"math/rand/v2"
	"sync"
	"sync/atomic"
)

// entropy stands before the randomness of the operating system: while an
// experiment makes a node, it is drawn from the experiment's seed. A node's name
// holds random bits, and by names it is decided which nodes admit when the store
// is away and each could only admit a part of a token.
var entropy = &source{system: crand.Reader}

func init() { crand.Reader = entropy }

type source struct {
	system io.Reader
	mu     sync.Mutex // held while seeded is set
	seeded atomic.Pointer[rand.ChaCha8]
}

// Read is part of io.Reader.
func (s *source) Read(p []byte) (int, error) {
	if r := s.seeded.Load(); r != nil {
		return r.Read(p)
	}
	return s.system.Read(p)
}

// during calls a function that draws from a seed, and never waits.
func (s *source) during(seed uint64, do func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	var key [32]byte
	binary.LittleEndian.PutUint64(key[:], seed)
	s.seeded.Store(rand.NewChaCha8(key))
	defer s.seeded.Store(nil)
	do()
}
