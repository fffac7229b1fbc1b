package exact

import (
	"crypto/sha256"
	"encoding/hex"
	"strconv"
)

// ShortKey is the length in bytes up to which a key is used as it is.
const ShortKey = 64

// CellKey returns what stands for key in cells and in Redis: the key itself
// up to 64 bytes, else "#" and its SHA-256 in hex. That has 65 bytes, so it
// never equals a short key; and clients who choose their keys cannot make
// two of them meet.
func CellKey(key string) string {
	if len(key) <= ShortKey {
		return key
	}
	sum := sha256.Sum256([]byte(key))
	b := make([]byte, 1, 1+2*len(sum))
	b[0] = '#'
	return string(hex.AppendEncode(b, sum[:]))
}

// Account returns the name in Redis of a limiter's account for a key, which is
// given as [CellKey] returned it. The empty braces make a cluster hash the
// whole name, whatever braces users have in their keys; the length keeps
// limiter "a", key "b:c" apart from limiter "a:b", key "c". The 1 is the
// version of the format.
func (s *Store) Account(limiter, cellKey string) string {
	return s.prefix + ":{}a1:" + strconv.Itoa(len(limiter)) + ":" + limiter + ":" + cellKey
}
