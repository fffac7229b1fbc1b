package ledger_test

import (
	"context"
	"fmt"
	"reflect"
	"slices"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"
	"pgregory.net/rapid"

	"github.com/hybridlimit/hybrid/exact"
	"github.com/hybridlimit/hybrid/internal/ledger"
	"github.com/hybridlimit/hybrid/internal/redistest"
	"github.com/hybridlimit/hybrid/slice"
	"github.com/hybridlimit/hybrid/syncer"
)

var _ = []syncer.Store{(*ledger.Store)(nil), (*exact.Store)(nil)}

// TestStoreEqualsExact runs histories through the store in memory and through
// the one in Redis: same answers, same accounts, same times to live, all in
// the virtual time of a bubble for each history.
func TestStoreEqualsExact(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		history := drawHistory(rt)
		wrong := ""
		redistest.InBubble(t, func(t *testing.T, mini *miniredis.Miniredis) { wrong = runBoth(t, mini, history) })
		if wrong != "" {
			rt.Fatal(wrong)
		}
	})
}

// pair is the two stores.
type pair struct {
	mem   *ledger.Store
	exact *exact.Store
	mini  *miniredis.Miniredis
	rdb   *redis.Client

	ends  map[int64]bool // ms at which a registry or the marks expire
	wrong string         // the first difference
}

var ctx = context.Background()

// runBoth returns the first difference, if there is one.
func runBoth(t *testing.T, mini *miniredis.Miniredis, history []step) string {
	link := redistest.NewLink(mini.Dial)
	link.RTT(func() time.Duration { return 0 }) // memory answers at once, too
	p := &pair{mem: ledger.NewStore(), mini: mini, rdb: link.Client(t), ends: map[int64]bool{}}
	var err error
	if p.exact, err = exact.New(p.rdb, nil); err != nil {
		return err.Error()
	}
	for i, s := range history {
		if s.do(p); p.wrong == "" {
			p.compare()
		}
		if p.wrong != "" {
			return fmt.Sprintf("step %d, %v: %s", i, s, p.wrong)
		}
	}
	return ""
}

// same notes a difference between what Redis and what memory says.
func (p *pair) same(what string, redis, mem any) {
	if p.wrong == "" && !reflect.DeepEqual(redis, mem) {
		p.wrong = fmt.Sprintf("%s: Redis has\n%+v, memory\n%+v", what, redis, mem)
	}
}

// compare holds all accounts against each other.
func (p *pair) compare() {
	for _, a := range accounts {
		p.same("text of "+a, p.rdb.Get(ctx, a).Val(), shown(p.mem.Load(a)))
		p.same("life of "+a, max(0, p.rdb.PTTL(ctx, a).Val()), p.mem.TTL(a))
	}
}

// nonsense is what a damaged account holds.
const nonsense = "nonsense"

func shown(a ledger.Account) string {
	if a.Damaged {
		return nonsense
	}
	return a.Text()
}

func (p *pair) settle(drawn []slice.Settle) {
	var inRedis, inMem []*slice.Settle
	now := time.Now().UnixMicro()
	for _, st := range drawn {
		st.Usage.Tag = tagAt(now, st)
		if u := &st.Usage; u.Return > 0 && u.ReturnAt != -1 { // -1 is spoilt
			u.ReturnAt = max(0, now+u.ReturnAt)
		}
		other := st
		inRedis, inMem = append(inRedis, &st), append(inMem, &other)
	}
	p.exact.Settle(ctx, inRedis)
	p.mem.Settle(ctx, inMem)
	for i, r := range inRedis {
		m := inMem[i]
		p.same("outcome", r.Outcome, m.Outcome)
		p.same("lone", r.Lone, m.Lone)
		p.same("error", r.Err != nil, m.Err != nil)
		p.same("grant", r.Grant, m.Grant)
	}
}

// tagAt makes a tag of one that is counted from the present.
func tagAt(now int64, st slice.Settle) (tag slice.Tag) {
	if st.Usage.Tag.Epoch != untagged {
		tag.Epoch = now/slice.Epoch + st.Usage.Tag.Epoch
	}
	if st.Rule.Window > 0 && st.Usage.Tag.Window != untagged {
		tag.Window = now/st.Rule.Window + st.Usage.Tag.Window
	}
	return tag
}

// pass lets time pass. A key's last millisecond is left out: Redis still has
// the key then, and so has memory, but the embedded server has not.
func (p *pair) pass(d time.Duration) {
	for time.Sleep(d); p.atAnEnd(); time.Sleep(time.Millisecond) {
	}
}

func (p *pair) atAnEnd() bool {
	return p.ends[time.Now().UnixMilli()] || slices.ContainsFunc(accounts, func(a string) bool {
		return p.mem.Load(a).Stored && p.mem.TTL(a) == 0
	})
}

func (p *pair) expireIn(d time.Duration) { p.ends[time.Now().Add(d).UnixMilli()] = true }

func (p *pair) beat(member, limiter string, ttl time.Duration) {
	r, m := slice.Fleet{Limiter: limiter}, slice.Fleet{Limiter: limiter}
	p.exact.Heartbeat(ctx, member, ttl, []*slice.Fleet{&r})
	p.mem.Heartbeat(ctx, member, ttl, []*slice.Fleet{&m})
	p.same("error", r.Err != nil, m.Err != nil)
	r.Err, m.Err = nil, nil
	p.same("fleet", r, m)
	if ttl > 0 {
		p.same("members", r.Members, p.mem.Members(limiter, ttl))
		p.expireIn(2 * ttl)
	}
}

func (p *pair) leave(member, limiter string) {
	limiters := []string{limiter, "never seen"}
	p.same("leave", p.exact.Leave(ctx, member, limiters), p.mem.Leave(ctx, member, limiters))
}

func (p *pair) mark(drawn []slice.Mark) {
	marks := slices.Clone(drawn)
	for i := range marks {
		marks[i].At += time.Now().UnixMicro()
	}
	p.same("mark", p.exact.Mark(ctx, marks), p.mem.Mark(ctx, marks))
	p.expireIn(time.Minute)
}

func (p *pair) marks(age int64, most int) {
	since := time.Now().UnixMicro() - age
	r, err := p.exact.Marks(ctx, since, most)
	m, _ := p.mem.Marks(ctx, since, most)
	p.same("error", err, nil)
	if len(r)+len(m) > 0 {
		p.same("marks", r, m)
	}
}

func (p *pair) damage(account string) {
	p.rdb.Set(ctx, account, nonsense, time.Minute)
	p.mem.Put(account, ledger.Parse(nonsense), time.Minute)
}

func (p *pair) lose() {
	p.mini.FlushAll()
	p.mem.Lose()
}
