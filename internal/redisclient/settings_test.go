package redisclient

import (
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
)

// A long StoreTimeout makes no risk of the defaults: a call ends by itself.
func TestSoundSettingsWithALongStoreTimeout(t *testing.T) {
	const nowhere, longest = "127.0.0.1:1", 10 * time.Second
	for _, rdb := range []redis.UniversalClient{
		redis.NewClient(&redis.Options{Addr: nowhere}), redis.NewClusterClient(&redis.ClusterOptions{Addrs: []string{nowhere}}),
		redis.NewRing(&redis.RingOptions{Addrs: map[string]string{"a": nowhere}}),
	} {
		s, known, made := Of(rdb)
		if got := s.risks(longest); !known || !made || len(got) != 0 {
			t.Errorf("%T: %v", rdb, got)
		}
		_ = rdb.Close()
	}
}
