package exact

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"

	"github.com/redis/go-redis/v9"

	"github.com/hybridlimit/hybrid/slice"
)

// Lanes divide the accounts into parts of which one server may have each alone, so
// that who calls can keep the failure of one from the others: the shards of a Ring,
// and equal parts of a cluster's hash slots, which follow its primaries as far as
// those own slots in a row. Any other client has one lane.
type lanes struct {
	count   int
	byAddr  map[string]int // of a Ring's shards
	slotted bool           // of a cluster
	probes  []string       // a key in each lane of a cluster
}

// clusterLanes is how many parts a cluster has. It divides by the usual numbers of
// primaries, so that they share no part but for the slot at an edge. More parts would
// follow others more closely, and fill calls less.
const (
	clusterLanes = 48
	clusterSlots = 16384
)

func (s *Store) divide() {
	s.lanes = lanes{count: 1}
	switch rdb := s.rdb.(type) {
	case *redis.Ring:
		s.lanes.byAddr = map[string]int{} // shards of one address share a lane
		for i, addr := range slices.Compact(slices.Sorted(maps.Values(rdb.Options().Addrs))) {
			s.lanes.byAddr[addr] = i
		}
		s.lanes.count = max(len(s.lanes.byAddr), 1)
	case *redis.ClusterClient:
		s.lanes.slotted, s.lanes.count = true, clusterLanes
		s.lanes.probes = make([]string, clusterLanes)
		for i, found := 0, 0; found < clusterLanes; i++ {
			key := s.prefix + ":{}p1:" + strconv.Itoa(i)
			if lane := s.Lane(key); s.lanes.probes[lane] == "" {
				s.lanes.probes[lane] = key
				found++
			}
		}
	}
}

// Lanes returns the number of lanes, at least 1.
func (s *Store) Lanes() int { return s.lanes.count }

// Lane returns the lane of an account, 0 to Lanes − 1. It asks nobody. Shards whose
// addresses the Ring was not made with are in lane 0.
func (s *Store) Lane(account string) int {
	switch rdb := s.rdb.(type) {
	case *redis.Ring:
		shard, err := rdb.GetShardClientForKey(account)
		if err != nil {
			return 0 // all shards are down
		}
		return s.lanes.byAddr[shard.Options().Addr]
	case *redis.ClusterClient:
		return slotOf(account) * clusterLanes / clusterSlots
	default:
		return 0
	}
}

// FleetLane returns the lane of a limiter's fleet.
func (s *Store) FleetLane(limiter string) int { return s.Lane(s.membersKey(limiter)) }

// probeRule is the limit of the account that a probe settles, which lives for a
// millisecond.
var probeRule = slice.Rule{Burst: 1000, Rate: 1e-3}

// ErrShardDown is the answer to a probe of a shard that a Ring does not use.
var ErrShardDown = errors.New("hybrid: the ring has taken the shard out")

// Probe settles an account of the lane that nobody uses, with a write: it fails where
// settles fail.
func (s *Store) Probe(ctx context.Context, lane int) error {
	e := &slice.Settle{Account: s.prefix + ":{}p1:", Rule: probeRule, Usage: slice.Usage{Needs: []slice.Need{{Cost: 1, Count: 1}}}}
	if s.lanes.slotted {
		e.Account = s.lanes.probes[lane]
	}
	c := settleCall([]*slice.Settle{e})
	if err := s.runIn(ctx, lane, c); err != nil {
		return err
	}
	readReply([]*slice.Settle{e}, c)
	return e.Err
}

// runIn executes a call in a lane, which of a Ring the key does not choose.
func (s *Store) runIn(ctx context.Context, lane int, c *call) error {
	ring, ok := s.rdb.(*redis.Ring)
	if !ok {
		s.run(ctx, []*call{c})
		return nil
	}
	for _, shard := range ring.GetShardClients() {
		if s.lanes.byAddr[shard.Options().Addr] == lane {
			runOn(ctx, shard, []*call{c})
			return nil
		}
	}
	return fmt.Errorf("%w: %d", ErrShardDown, lane)
}

// slotOf returns the hash slot of a key of this package, whose first braces are
// empty, so that all of it counts: CRC-16 of the XMODEM kind, as the cluster
// specification of Redis has it.
func slotOf(key string) int {
	var crc uint16
	for i := range len(key) {
		crc = crc<<8 ^ crc16[byte(crc>>8)^key[i]]
	}
	return int(crc % clusterSlots)
}

var crc16 = func() (table [256]uint16) {
	for i := range table {
		crc := uint16(i) << 8
		for range 8 {
			carry := crc&0x8000 != 0
			crc <<= 1
			if carry {
				crc ^= 0x1021
			}
		}
		table[i] = crc
	}
	return table
}()
