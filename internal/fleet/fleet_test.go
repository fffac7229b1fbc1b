package fleet

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"testing"
	"time"

	"github.com/hybridlimit/hybrid/precheck"
	"github.com/hybridlimit/hybrid/slice"
)

func newFleet(least int) *Fleet {
	f := &Fleet{}
	f.Init("l", "me", least, 0)
	return f
}

func at(d time.Duration) int64 { return int64(d) }

func equal[T comparable](t *testing.T, what string, got, want T) {
	t.Helper()
	if got != want {
		t.Errorf("%s: %v, want %v", what, got, want)
	}
}

func TestTheSizeIsHeardAndNeverBelowTheDeclaredOne(t *testing.T) {
	f := newFleet(3)
	equal(t, "heard at first", f.Size(), 0)
	equal(t, "M at first", f.History().M(), 3)
	f.joined(&slice.Fleet{Members: []string{"me"}}, 0, at(time.Second))
	equal(t, "heard alone", f.Size(), 1)
	equal(t, "M alone", f.History().M(), 3)
	f.joined(&slice.Fleet{Members: []string{"a", "b", "c", "d", "me"}}, 0, at(2*time.Second))
	equal(t, "heard with four", f.Size(), 5)
	equal(t, "M with four", f.History().M(), 5)
	f.joined(&slice.Fleet{Members: []string{"me"}}, 0, at(3*time.Second))
	equal(t, "M alone again", f.History().M(), 3)
	equal(t, "largest since the four", f.LargestSince(at(2*time.Second)), 5)
	equal(t, "largest since they left", f.LargestSince(at(3*time.Second)), 3)
	equal(t, "M when none is declared", newFleet(0).History().M(), 1)
}

// Floors open one TTL after the registration, close when it is trusted no more, and begin
// anew with the next one.
func TestFloorsFollowTheRegistration(t *testing.T) {
	f, size := newFleet(0), precheck.Size{Cap: 50, Rate: 10e-9} // 10 per second
	floor := func(now int64) float64 {
		level, _ := f.Fresh().Level(now, size, f.History())
		return level
	}
	beat := func(at int64, joined bool) { f.joined(&slice.Fleet{Members: []string{"me"}, Joined: joined}, at, at) }
	if f.FloorOpen(0) || f.FloorOpen(at(time.Hour)) {
		t.Error("open without a registration")
	}
	beat(at(time.Second), true)
	for now := at(2 * time.Second); now < at(20*time.Second); now += at(time.Second) {
		equal(t, fmt.Sprintf("open at %v", time.Duration(now)), f.FloorOpen(now), now >= at(6*time.Second))
		beat(now, false)
	}
	equal(t, "earned since", f.FloorFrom(), at(6*time.Second))
	equal(t, "tokens of a new floor two seconds later", floor(at(8*time.Second)), 20)
	last := at(19 * time.Second)
	equal(t, "open just before trust ends", f.FloorOpen(last+int64(trust)-1), true)
	equal(t, "open when trust has ended", f.FloorOpen(last+int64(trust)), false)
	again := last + int64(trust) + 1 // the store may have kept the registration, but the node stopped to trust it
	beat(again, false)
	equal(t, "open after the lapse", f.FloorOpen(again), false)
	equal(t, "earned since", f.FloorFrom(), again+int64(TTL))
	equal(t, "tokens when it opens again", floor(again+int64(TTL)), 0)
}

// Each key has an order of its own, in which each node has one place.
func TestRanksAreAnOrderForEachKey(t *testing.T) {
	const nodes, keys = 5, 2000
	members := make([]string, nodes)
	for i := range members {
		members[i] = fmt.Sprint("node ", i)
	}
	fleets := make([]*Fleet, nodes)
	for i, m := range members {
		fleets[i] = &Fleet{}
		fleets[i].Init("l", m, 0, 0)
		equal(t, "rank before the fleet was heard of", fleets[i].Rank("k"), math.MaxInt)
		fleets[i].joined(&slice.Fleet{Members: members}, 0, 0)
	}
	first := make([]int, nodes)
	for k := range keys {
		var ranks []int
		for i, f := range fleets {
			r := f.Rank(fmt.Sprint(k))
			if ranks = append(ranks, r); r == 0 {
				first[i]++
			}
		}
		if slices.Sort(ranks); !slices.Equal(ranks, []int{0, 1, 2, 3, 4}) {
			t.Fatalf("key %d: ranks %v", k, ranks)
		}
	}
	for i, n := range first {
		if n < keys/nodes*3/4 || n > keys/nodes*5/4 {
			t.Errorf("node %d is the first of %d of %d keys", i, n, keys)
		}
	}
}

// The rank of a node that stays does not change by more than those who leave.
func TestRanksMoveLittle(t *testing.T) {
	f := newFleet(0)
	for k := range 200 {
		key := fmt.Sprint(k)
		f.joined(&slice.Fleet{Members: []string{"a", "b", "c", "me"}}, 0, 0)
		with := f.Rank(key)
		f.joined(&slice.Fleet{Members: []string{"a", "b", "me"}}, 0, 0)
		if left := f.Rank(key); left != with && left != with-1 {
			t.Errorf("key %s: rank %d, and %d when one of four has left", key, with, left)
		}
	}
}

// health is a shard that a test sets.
type health struct {
	down      bool
	settledAt int64
	failed    []error
	timedOut  int
	answered  int
}

func (h *health) Down() bool              { return h.down }
func (h *health) Failed(_ int64, e error) { h.failed = append(h.failed, e) }
func (h *health) TimedOut(int64)          { h.timedOut++ }
func (h *health) Answered(_, _ int64)     { h.answered, h.down = h.answered+1, false }
func (h *health) SettledAt() int64        { return h.settledAt }

// A refused registration is reported once, when five heartbeats in a row were refused by
// a shard that executes settles.
func TestRefusalsAreReportedOnce(t *testing.T) {
	for _, c := range []struct {
		name   string
		health health
		want   int
	}{
		{"settles are executed", health{settledAt: at(2 * time.Second)}, 1},
		{"nothing is executed since", health{settledAt: at(time.Second)}, 0},
		{"the shard is down", health{settledAt: at(time.Hour), down: true}, 0},
	} {
		f, reports := newFleet(0), 0
		for i := range 20 {
			if f.refused(at(time.Duration(i+1)*time.Second), &c.health) {
				reports++
				equal(t, c.name+": refusals before the report", i+1, fewRefusals)
			}
		}
		equal(t, c.name+": reports", reports, c.want)
	}
}

var errGone = errors.New("connection refused")
