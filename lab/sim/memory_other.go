package sim

import (
	"context"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/hybridlimit/hybrid/internal/ledger"
	"github.com/hybridlimit/hybrid/slice"
)

// This file answers what package exact asks besides settles: heartbeats, and the
// marks of scarce accounts. What it never asks is an error.

func executeOther(store *ledger.Store, cmd redis.Cmder) any {
	ctx, args := context.Background(), cmd.Args()
	switch cmd.Name() {
	case "eval", "evalsha":
		if key, _ := args[3].(string); strings.HasPrefix(key, probePrefix) {
			probe := decode(args)
			store.Settle(ctx, probe)
			return encode(probe)
		}
		return heartbeat(store, args)
	case "zrem":
		limiter := strings.TrimPrefix(args[1].(string), fleetPrefix)
		_ = store.Leave(ctx, args[2].(string), []string{limiter}) // never fails
		return int64(1)
	case "zadd":
		_ = store.Mark(ctx, marksOf(args[2:])) // never fails
		return int64(1)
	case "zremrangebyscore", "zremrangebyrank", "pexpire": // follow each zadd; Mark has done it
		return int64(1)
	case "zrangebyscore":
		return readMarks(store, args)
	}
	return storeError("ERR unknown command '" + cmd.Name() + "'")
}

// heartbeat executes {"evalsha", sha, 1, registry, member, ttl}.
func heartbeat(store *ledger.Store, args []any) any {
	key, _ := args[3].(string)
	limiter, ok := strings.CutPrefix(key, fleetPrefix)
	if !ok || len(args) != 6 {
		return storeError("NOSCRIPT No matching script. Please use EVAL.")
	}
	f := &slice.Fleet{Limiter: limiter}
	ttl := time.Duration(args[5].(int64)) * time.Millisecond
	store.Heartbeat(context.Background(), args[4].(string), ttl, []*slice.Fleet{f})
	reply := []any{one(f.Joined)}
	for _, m := range f.Members {
		reply = append(reply, m)
	}
	return reply
}

// marksOf reads {score, "cost:account", ...}.
func marksOf(args []any) (marks []slice.Mark) {
	for ; len(args) >= 2; args = args[2:] {
		text, account, _ := strings.Cut(args[1].(string), ":")
		cost, _ := strconv.ParseInt(text, 10, 64)
		marks = append(marks, slice.Mark{Account: account, Cost: cost, At: int64(args[0].(float64))})
	}
	return marks
}

// readMarks executes {"zrangebyscore", key, "(since", "+inf", "withscores", "limit", 0, most}.
func readMarks(store *ledger.Store, args []any) any {
	since, err := strconv.ParseInt(strings.TrimPrefix(args[2].(string), "("), 10, 64)
	if err != nil {
		since = math.MinInt64
	}
	marks, _ := store.Marks(context.Background(), since, int(args[len(args)-1].(int64))) // never fails
	members := make([]redis.Z, len(marks))
	for i, m := range marks {
		members[i] = redis.Z{Score: float64(m.At), Member: strconv.FormatInt(m.Cost, 10) + ":" + m.Account}
	}
	return members
}
