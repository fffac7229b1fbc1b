package exact

import (
	"errors"
	"strings"
	"testing"

	"github.com/hybridlimit/hybrid/internal/redistest"
)

func TestCellKey(t *testing.T) {
	for _, n := range []int{0, 1, 64} {
		if k := strings.Repeat("k", n); CellKey(k) != k {
			t.Errorf("a key of %d bytes became %q", n, CellKey(k))
		}
	}
	for _, n := range []int{65, 4096} {
		if k := CellKey(strings.Repeat("k", n)); len(k) != 65 || k[0] != '#' {
			t.Errorf("a key of %d bytes became %q", n, k)
		}
	}
	if got, want := CellKey(strings.Repeat("a", 65)), "#635361c48bb9eab14198e76ea8ab7f1a41685d6ad62aa9146d301d4f17eb0ae0"; got != want {
		t.Errorf("%q, want %q", got, want) // accounts in Redis are named by it
	}
	key := strings.Repeat("k", 64)
	if n := testing.AllocsPerRun(100, func() { _ = CellKey(key) }); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

func TestPrefix(t *testing.T) {
	rdb := redistest.MiniClient(t)
	for _, prefix := range []string{"", "a", "my service:1", strings.Repeat("p", 200), "日本"} {
		s, err := New(rdb, &Options{Prefix: prefix})
		if err != nil {
			t.Fatalf("%q: %v", prefix, err)
		}
		if prefix == "" {
			prefix = "hybrid"
		}
		if got, want := s.Account("api", "k:1"), prefix+":{}a1:3:api:k:1"; got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
	for _, prefix := range []string{"{", "a}b", "a\nb", "\x7f", strings.Repeat("p", 201)} {
		if _, err := New(rdb, &Options{Prefix: prefix}); !errors.Is(err, ErrInvalidOption) {
			t.Errorf("%q: %v", prefix, err)
		}
	}
	if _, err := New(nil, nil); !errors.Is(err, ErrInvalidOption) {
		t.Error(err)
	}
}
