package redistest

import (
	"context"
	"fmt"
	"time"

	"github.com/redis/go-redis/v9"
)

// Reshard moves slots with their keys from one primary to another, with the commands
// of redis-cli. All of the slots are open for as long as hold, with half of their keys
// moved: one that has moved is then asked for with ASK, and afterwards with MOVED. It
// returns how many keys it moved.
func (c *Cluster) Reshard(from, to *Server, slots []int, hold time.Duration) (keys int, err error) {
	source, target := redis.NewClient(&redis.Options{Addr: from.Addr}), redis.NewClient(&redis.Options{Addr: to.Addr})
	defer source.Close()
	defer target.Close()
	host, port := hostPort(to.Addr)
	m := &move{cluster: c, source: source, target: target, host: host, port: port}
	ctx := context.Background()
	m.sourceID, m.targetID = source.ClusterMyID(ctx).Val(), target.ClusterMyID(ctx).Val()
	for _, slot := range slots {
		if err := m.open(ctx, slot); err != nil {
			return m.keys, fmt.Errorf("slot %d: %w", slot, err)
		}
	}
	time.Sleep(hold)
	for _, slot := range slots {
		if err := m.finish(ctx, slot); err != nil {
			return m.keys, fmt.Errorf("slot %d: %w", slot, err)
		}
	}
	return m.keys, nil
}

// move is a resharding under way.
type move struct {
	cluster            *Cluster
	source, target     *redis.Client
	sourceID, targetID string
	host, port         string // of the target
	keys               int
}

// open begins to move a slot, and moves half of its keys.
func (m *move) open(ctx context.Context, slot int) error {
	if err := m.target.Do(ctx, "cluster", "setslot", slot, "importing", m.sourceID).Err(); err != nil {
		return err
	}
	if err := m.source.Do(ctx, "cluster", "setslot", slot, "migrating", m.targetID).Err(); err != nil {
		return err
	}
	keys, err := m.source.ClusterGetKeysInSlot(ctx, slot, 100).Result()
	if err != nil {
		return err
	}
	return m.migrate(ctx, keys[:(len(keys)+1)/2])
}

// finish moves what is left of a slot, and the slot.
func (m *move) finish(ctx context.Context, slot int) error {
	for {
		keys, err := m.source.ClusterGetKeysInSlot(ctx, slot, 100).Result()
		if err != nil {
			return err
		}
		if len(keys) == 0 {
			return m.assign(ctx, slot)
		}
		if err := m.migrate(ctx, keys); err != nil {
			return err
		}
	}
}

func (m *move) migrate(ctx context.Context, keys []string) error {
	if len(keys) == 0 {
		return nil
	}
	args := []any{"migrate", m.host, m.port, "", 0, 2000, "keys"}
	for _, k := range keys {
		args = append(args, k)
	}
	m.keys += len(keys)
	return m.source.Do(ctx, args...).Err()
}

// assign gives the slot to the target: the target and the source are told first,
// so that nobody owns it twice.
func (m *move) assign(ctx context.Context, slot int) error {
	clients := []*redis.Client{m.target, m.source}
	for _, s := range m.cluster.Servers {
		rdb := redis.NewClient(&redis.Options{Addr: s.Addr})
		defer rdb.Close()
		clients = append(clients, rdb)
	}
	for _, rdb := range clients {
		if err := rdb.Do(ctx, "cluster", "setslot", slot, "node", m.targetID).Err(); err != nil {
			return err
		}
	}
	return nil
}
