package exact

import (
	"context"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/hybridlimit/hybrid/internal/redistest"
	"github.com/hybridlimit/hybrid/slice"
)

func newStore(t testing.TB, rdb redis.UniversalClient) *Store {
	t.Helper()
	s, err := New(rdb, nil)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestTakeUntilEmpty(t *testing.T) {
	redistest.Both(t, func(t *testing.T, rdb *redis.Client) {
		s := newStore(t, rdb)
		for i := range 12 {
			d, err := s.Take(context.Background(), "api", "alice", PerHour(10), 1)
			if err != nil || d.Allowed != (i < 10) || d.Limit != 10 || d.Remaining != int64(max(0, 9-i)) {
				t.Fatalf("%d: %+v %v", i, d, err)
			}
		}
		b := []*slice.Settle{{Account: s.Account("api", "bob"), Rule: PerHour(100).Rule(), Usage: slice.Usage{
			Tag: slice.Tag{}, Needs: []slice.Need{{Cost: 2, Count: 3}}, Want: 50, Least: 1, Unit: 1, Divisor: 2}}}
		s.Settle(context.Background(), b)
		t.Logf("%+v %v", b[0], rdb.Get(context.Background(), b[0].Account))
		if b[0].Outcome != slice.Ran || b[0].Grant.Granted != 47 {
			t.Fatal("no grant")
		}
	})
}
