package syncer

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hybridlimit/hybrid/slice"
)

// A node may end at any moment of any traffic: whoever waits gets an answer,
// nothing stays lent, and the end takes no longer than a few calls.
func TestANodeMayEndAtAnyMoment(t *testing.T) {
	rounds := 60
	if raceEnabled {
		rounds = 10
	}
	for seed := range uint64(rounds) {
		synctest.Test(t, func(t *testing.T) { endAtAnyMoment(t, seed) })
	}
}

func endAtAnyMoment(t *testing.T, seed uint64) {
	store := newFake(t)
	store.onCall(func([]*slice.Settle) { time.Sleep(rand.N(5 * time.Millisecond)) })
	crowded := seed%2 == 1 // evicted cells settle beside their successors; what nobody paid for lapses
	store.shared = crowded
	w := newWorld(t, store, func(c *Config) {
		if crowded {
			c.MaxKeys = 6
		}
	})
	random := rand.New(rand.NewPCG(seed, 7))
	rules := []slice.Rule{bucket(1000, time.Second), bucket(5, time.Second), bucket(100, time.Minute), fixed(500, 2*time.Second)}
	var wg sync.WaitGroup
	for i, rule := range rules {
		l := w.add(LimiterConfig{Name: fmt.Sprint(i), Plan: NewPlan(rule, Dial{Over: 0.1, Slices: true})})
		for range 3 {
			gap := rand.New(rand.NewPCG(seed, random.Uint64()))
			wg.Go(func() {
				for {
					_, err := allowCtx(context.Background(), l, fmt.Sprint(gap.IntN(3)), 1+gap.Int64N(2))
					if errors.Is(err, ErrClosed) {
						return
					}
					time.Sleep(time.Duration(gap.Int64N(int64(10 * time.Millisecond))))
				}
			})
		}
	}
	time.Sleep(time.Duration(random.Int64N(int64(4 * time.Second))))
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	w.Begin()
	if err := w.Shutdown(ctx, func() {}); err != nil {
		t.Errorf("seed %d: %v", seed, err)
	}
	wg.Wait()
	for name, account := range store.Accounts() {
		if rule := rules[name[0]-'0']; !crowded && rule.Window == 0 && account.Lent() > 0 {
			t.Errorf("seed %d: %v tokens of %s are still lent", seed, account.Lent(), name)
		}
	}
}
