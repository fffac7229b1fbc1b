package exact

import (
	"context"
	"fmt"
	"reflect"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"pgregory.net/rapid"

	"github.com/hybridlimit/hybrid/internal/ledger"
	"github.com/hybridlimit/hybrid/internal/redistest"
	"github.com/hybridlimit/hybrid/slice"
)

// world is three accounts in Redis, each with its model.
type world struct {
	s      *Store
	rdb    *redis.Client
	models [3]modelled
	names  [3]string
	rules  [3]slice.Rule
	clock  int64 // TIME at the last settle
}

// modelled is what an account in Redis has to be.
type modelled struct {
	ledger.Account
	written time.Time // just before the last write
	life    int64     // time to live of the last write, ms
}

func (m *modelled) expired() bool {
	return time.Since(m.written) >= time.Duration(m.life)*time.Millisecond
}

// TestSettleEqualsModel runs random histories of three accounts through the
// script and the model. Time passes by moving the stored ts into the past
// (or, for a clock that steps back, into the future).
func TestSettleEqualsModel(t *testing.T) {
	redistest.Both(t, func(t *testing.T, rdb *redis.Client) {
		s, n := newStore(t, rdb), 0
		rapid.Check(t, func(t *rapid.T) {
			n++
			w := &world{s: s, rdb: rdb, clock: 1795980557158196}
			for i := range w.models {
				w.names[i] = s.Account("api", fmt.Sprint(n, "-", i))
				w.rules[i] = drawRule(t)
				rdb.Del(context.Background(), w.names[i])
			}
			t.Repeat(map[string]func(*rapid.T){
				"settle": w.settle,
				"pass":   w.pass,
				"limit":  func(t *rapid.T) { w.rules[drawAccount(t)] = drawRule(t) },
			})
		})
	})
}

func drawAccount(t *rapid.T) int { return rapid.IntRange(0, 2).Draw(t, "account") }

// tokens are small most of the time, and now and then at the edge of the exact integers.
func drawTokens(t *rapid.T, name string, least int64) int64 {
	return rapid.OneOf(
		rapid.Int64Range(least, 20), rapid.Int64Range(least, 2000),
		rapid.Int64Range(slice.MaxTokens-3, slice.MaxTokens), rapid.Int64Range(least, slice.MaxTokens),
	).Draw(t, name)
}

func drawRule(t *rapid.T) slice.Rule {
	l := Limit{count: drawTokens(t, "count", 1), burst: drawTokens(t, "burst", 1)}
	l.period = drawPeriod(t)
	if rapid.Bool().Draw(t, "windowed") {
		l.windowed, l.burst = true, l.count
	}
	return l.Rule()
}

func drawUsage(t *rapid.T, now int64, r slice.Rule) slice.Usage {
	var u slice.Usage
	if rapid.Bool().Draw(t, "tagged") {
		u.Tag.Epoch = max(1, now/slice.Epoch+rapid.Int64Range(-3, 1).Draw(t, "tag"))
		if r.Window > 0 {
			u.Tag.Window = max(0, now/r.Window+rapid.SampledFrom([]int64{0, 0, 0, -1, 1}).Draw(t, "tagWindow"))
		}
		most := rapid.SampledFrom([]int64{slice.MaxSlice, slice.MaxSlice, slice.MaxTokens}).Draw(t, "most")
		u.Spent, u.Returned, u.Held = drawPart(t, "spent", most), drawPart(t, "returned", most), drawPart(t, "held", slice.MaxSlice)
	}
	if rapid.IntRange(0, 3).Draw(t, "charges") == 0 {
		u.Charged = float64(drawTokens(t, "charged", -slice.MaxTokens)) / 4
		u.Fallback = float64(drawTokens(t, "fallback", 0)) / 8
	}
	if rapid.IntRange(0, 3).Draw(t, "undoes") == 0 {
		u.Return = float64(drawTokens(t, "undone", 1)) / 4
		u.ReturnAt = max(0, now+rapid.Int64Range(-3*slice.Epoch, slice.Epoch).Draw(t, "since"))
	}
	for range rapid.IntRange(0, 3).Draw(t, "runs") {
		u.Needs = append(u.Needs, slice.Need{Cost: drawTokens(t, "cost", 1), Count: drawTokens(t, "of", 0)})
	}
	if rapid.Bool().Draw(t, "wants") {
		u.Want, u.Least = drawTokens(t, "want", 1), rapid.Int64Range(1, 5).Draw(t, "least")
		u.Unit, u.Divisor = rapid.Int64Range(1, 7).Draw(t, "unit"), rapid.Int64Range(1, 40).Draw(t, "divisor")
	}
	return u
}

func drawPart(t *rapid.T, name string, most int64) int64 {
	if rapid.Bool().Draw(t, "no "+name) {
		return 0
	}
	return rapid.OneOf(rapid.Int64Range(0, 50), rapid.Int64Range(0, most)).Draw(t, name)
}

// settle sends a batch, possibly with the same account twice, and compares.
func (w *world) settle(t *rapid.T) {
	ctx := context.Background()
	var batch []*slice.Settle
	var which []int
	for range rapid.IntRange(1, 4).Draw(t, "batch") {
		i := drawAccount(t)
		which = append(which, i)
		batch = append(batch, &slice.Settle{Account: w.names[i], Rule: w.rules[i],
			Usage: drawUsage(t, max(w.clock, w.models[i].At), w.rules[i])})
	}
	sent := time.Now()
	w.s.Settle(ctx, batch)
	wrote, left := false, [3]int64{-1, -1, -1}
	for n, e := range batch {
		if e.Outcome != slice.Ran {
			t.Fatalf("%v: %v", e.Outcome, e.Err)
		}
		i := which[n]
		m := &w.models[i]
		before := m.Account
		w.clock = e.Grant.Clock
		var want slice.Grant
		if want, wrote = m.Settle(e.Grant.Clock, e.Rule, e.Usage); !reflect.DeepEqual(want, e.Grant) {
			t.Fatalf("account %d: %+v\n of %+v\n got %+v\nwant %+v", i, e, before, e.Grant, want)
		}
		if wrote {
			m.written, m.life = sent, m.TTL(e.Grant.Clock, e.Rule, before, left[i])
			left[i] = -1
			if m.Stored {
				left[i] = m.life - 1 // the script may have run into another ms
			}
		}
	}
	if n := len(batch) - 1; wrote {
		w.checkTTL(t, which[n], batch[n])
	}
	for _, name := range w.names {
		w.rdb.Persist(ctx, name) // what is moved in time must not expire meanwhile
	}
	w.compare(t)
}

// compare holds what is stored against the models, to the byte.
func (w *world) compare(t *rapid.T) {
	for i := range w.models {
		m := &w.models[i]
		got, err := w.rdb.Get(context.Background(), w.names[i]).Result()
		switch {
		case err == redis.Nil && m.Stored && m.expired():
			*m = modelled{}
		case err == redis.Nil && m.Stored:
			t.Fatalf("account %d is gone, should be %s for %d ms", i, m.Text(), m.life)
		case err == nil && got != m.Text():
			t.Fatalf("account %d is %q, should be %q", i, got, m.Text())
		}
	}
}

// checkTTL holds the time to live of an account that was just written against the rule.
func (w *world) checkTTL(t *rapid.T, i int, e *slice.Settle) {
	m := &w.models[i]
	if !m.Stored {
		return
	}
	got := w.rdb.PTTL(context.Background(), w.names[i]).Val().Milliseconds()
	if got > m.life && m.Used <= float64(e.Rule.Burst) || got < m.life-time.Since(m.written).Milliseconds()-1 {
		t.Fatalf("account %d lives for %d ms, should %d: %+v", i, got, m.life, e)
	}
}

// pass lets time pass for one account: a moment, or up to some epochs, or back.
func (w *world) pass(t *rapid.T) {
	i := drawAccount(t)
	m := &w.models[i]
	if !m.Stored {
		t.Skip()
	}
	us := rapid.OneOf(rapid.Int64Range(0, 1_000_000), rapid.Int64Range(0, 4*slice.Epoch),
		rapid.Int64Range(-2*slice.Epoch, 0), rapid.Int64Range(0, 1e15)).Draw(t, "µs")
	f := strings.Split(m.Text(), " ")
	f[1] = strconv.FormatInt(max(0, m.At-us), 10)
	text := strings.Join(f, " ")
	*m = modelled{Account: ledger.Parse(text), written: time.Now(), life: time.Hour.Milliseconds()}
	if err := w.rdb.Set(context.Background(), w.names[i], text, redis.KeepTTL).Err(); err != nil {
		t.Fatal(err)
	}
}
