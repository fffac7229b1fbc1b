package store

import (
	"context"
	"fmt"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/hybridlimit/hybrid/exact"
	"github.com/hybridlimit/hybrid/slice"
)

// kind is a sort of settle that occurs.
type kind struct {
	name    string
	rule    slice.Rule
	usage   slice.Usage
	holds   bool // reports a slice
	fresh   bool // of an account that nobody has asked for
	prepare func(ctx context.Context, rdb *redis.Client, accounts []string) error
	want    func(e *slice.Settle) bool // what the script has to make of it
}

// wide is a limit that a measurement does not use up, with a rate of many digits.
var wide = exact.PerMinute(1000).WithBurst(1e9).Rule()

var oneNeed = []slice.Need{{Cost: 1, Count: 1}}

// kinds are what a fleet sends, the most frequent ones first.
func kinds() []kind {
	return []kind{
		{name: "tick: reports a slice, renews it, takes more", rule: wide, holds: true,
			usage: slice.Usage{Spent: 5, Held: 40, Charged: 0.375, Want: 5, Least: 2, Unit: 1, Divisor: 40},
			want:  func(e *slice.Settle) bool { return e.Outcome == slice.Ran && e.Grant.Granted == 5 }},
		{name: "need: a request waits, and is admitted", rule: wide, usage: slice.Usage{Needs: oneNeed},
			want: func(e *slice.Settle) bool { return e.Outcome == slice.Ran && e.Grant.Admitted[0] == 1 }},
		{name: "denied: a request waits, and is refused", rule: exact.PerDay(5).Rule(), usage: slice.Usage{Needs: oneNeed},
			prepare: fill,
			want:    func(e *slice.Settle) bool { return e.Outcome == slice.Ran && e.Grant.Admitted[0] == 0 }},
		{name: "first contact: a need and a wish, of no account", rule: exact.PerMinute(1000).Rule(), fresh: true,
			usage: slice.Usage{Needs: oneNeed, Want: 20, Least: 2, Unit: 1, Divisor: 40},
			want:  func(e *slice.Settle) bool { return e.Outcome == slice.Ran && e.Grant.Granted > 0 }},
		{name: "poisoned: a key of another type", rule: wide, usage: slice.Usage{Needs: oneNeed}, prepare: poison,
			want: func(e *slice.Settle) bool { return e.Outcome == slice.NotRun && e.Lone }},
	}
}

// crowded is a settle with as many runs of needs as an account has in the fullest call
// that there is.
func crowded() kind {
	k := kind{name: "8 runs of needs", rule: wide,
		want: func(e *slice.Settle) bool { return e.Outcome == slice.Ran && e.Grant.Admitted[7] == 2 }}
	for cost := range int64(8) {
		k.usage.Needs = append(k.usage.Needs, slice.Need{Cost: cost + 1, Count: 2})
	}
	return k
}

// fill uses up the accounts.
func fill(ctx context.Context, rdb *redis.Client, accounts []string) error {
	now := time.Now().UnixMicro()
	for _, a := range accounts {
		if err := rdb.Set(ctx, a, fmt.Sprintf("5 %d 0 0", now), time.Hour).Err(); err != nil {
			return err
		}
	}
	return nil
}

// poison puts lists where accounts should be.
func poison(ctx context.Context, rdb *redis.Client, accounts []string) error {
	for _, a := range accounts {
		if err := rdb.RPush(ctx, a, "x").Err(); err != nil {
			return err
		}
	}
	return nil
}

// batch is settles of one kind, of different accounts.
type batch struct {
	kind    kind
	settles []*slice.Settle
	made    int // names of fresh accounts
}

// newBatch names accounts as the store does, with keys of 16 bytes.
func newBatch(k kind, owner string, size int) *batch {
	b := &batch{kind: k}
	for range size {
		b.settles = append(b.settles, &slice.Settle{Account: b.name(owner), Rule: k.rule, Usage: k.usage})
	}
	return b
}

func (b *batch) name(owner string) string {
	b.made++
	return fmt.Sprintf("hybrid:{}a1:3:api:%.8s%08d", owner+"--------", b.made)
}

func (b *batch) accounts() (names []string) {
	for _, e := range b.settles {
		names = append(names, e.Account)
	}
	return names
}

// renew makes the batch what is sent next.
func (b *batch) renew(owner string) {
	epoch := time.Now().UnixMicro() / slice.Epoch
	for _, e := range b.settles {
		if b.kind.holds {
			e.Usage.Tag.Epoch = epoch
		}
		if b.kind.fresh {
			e.Account = b.name(owner)
		}
	}
}

// check fails unless the script did what the kind is about.
func (b *batch) check() error {
	for _, e := range b.settles {
		if !b.kind.want(e) {
			return fmt.Errorf("store: %s: outcome %v (%v), grant %+v", b.kind.name, e.Outcome, e.Err, e.Grant)
		}
	}
	return nil
}
