package exact_test

import (
	"context"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/hybridlimit/hybrid/exact"
	"github.com/hybridlimit/hybrid/internal/redistest"
	"github.com/hybridlimit/hybrid/slice"
)

// Of many holders one gets what was paid for a return, once; an unpaid mark has nothing.
func TestOneHolderClaimsAMark(t *testing.T) {
	redistest.Both(t, func(t *testing.T, rdb *redis.Client) {
		store, err := exact.New(rdb, nil)
		if err != nil {
			t.Fatal(err)
		}
		ctx := context.Background()
		marks := []slice.Mark{{Account: "5:limit:a:b", Cost: 50, At: 1_000_000, Paid: true}, {Account: "5:limit:a:b", Cost: 50, At: 1_000_001}}
		if err := store.Mark(ctx, marks); err != nil {
			t.Fatal(err)
		}
		read, err := store.Marks(ctx, 0, 10)
		if err != nil || len(read) != 2 || read[0] != marks[0] || read[1] != marks[1] {
			t.Fatalf("read %+v, %v", read, err)
		}
		var got atomic.Int32
		var holders sync.WaitGroup
		for range 8 {
			holders.Go(func() {
				claimed, err := store.Claim(ctx, read[:1])
				if err != nil {
					t.Error(err)
				}
				if len(claimed) == 1 && claimed[0] {
					got.Add(1)
				}
			})
		}
		holders.Wait()
		if got.Load() != 1 {
			t.Errorf("%d holders claimed it", got.Load())
		}
		if read, err = store.Marks(ctx, 0, 10); err != nil || len(read) != 1 || read[0] != marks[1] {
			t.Errorf("then %+v, %v", read, err)
		}
	})
}
