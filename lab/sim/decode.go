package sim

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/redis/go-redis/v9"

	"github.com/hybridlimit/hybrid/slice"
)

// This file reads the contract on top of exact/lua/settle.lua, from the side of
// the store. It is written anew, so that it shares no mistake with package exact.

// isSettle says whether a command runs the settle script, whose keys are accounts.
func isSettle(cmd redis.Cmder) bool {
	key, ok := scriptKey(cmd)
	return ok && strings.HasPrefix(key, accountPrefix)
}

// scriptKey is the first key of a command that runs a script.
func scriptKey(cmd redis.Cmder) (key string, ok bool) {
	if name := cmd.Name(); name != "evalsha" && name != "eval" {
		return "", false
	}
	key, ok = cmd.Args()[3].(string)
	return key, ok
}

// decode reads {"evalsha", sha, keys, key..., argument...}.
func decode(args []any) []*slice.Settle {
	r := reader{args: args[2:]}
	batch := make([]slice.Settle, r.int())
	all := make([]*slice.Settle, len(batch))
	for i := range batch {
		all[i] = &batch[i]
		batch[i].Account = r.next().(string)
	}
	for i := range batch {
		batch[i].Rule, batch[i].Usage = r.settle()
	}
	return all
}

// reader takes one argument after the other.
type reader struct{ args []any }

func (r *reader) next() any {
	v := r.args[0]
	r.args = r.args[1:]
	return v
}

func (r *reader) int() int64 {
	switch v := r.next().(type) {
	case int64:
		return v
	case int:
		return int64(v)
	case string:
		if n, err := strconv.ParseInt(v, 10, 64); err == nil {
			return n
		}
	}
	panic(fmt.Sprintf("sim: a settle with an argument that is no whole number; %d left: %v", len(r.args), r.args))
}

func (r *reader) real() float64 {
	text, _ := r.next().(string)
	if text == "0" {
		return 0
	}
	v, err := strconv.ParseFloat(text, 64)
	if err != nil {
		panic(fmt.Sprintf("sim: a settle with %q for a number", text))
	}
	return v
}

// settle reads the arguments of one account.
func (r *reader) settle() (rule slice.Rule, u slice.Usage) {
	rule.Window, rule.Burst, rule.Rate = r.int(), r.int(), r.real()
	u.Tag.Epoch, u.Tag.Window = r.int(), r.int()
	u.Spent, u.Returned, u.Held = r.int(), r.int(), r.int()
	u.Charged, u.Fallback = r.real(), r.real()
	u.Want, u.Least, u.Unit, u.Divisor = r.int(), r.int(), r.int(), r.int()
	if n := r.int(); n > 0 {
		u.Needs = make([]slice.Need, n)
	}
	for i := range u.Needs {
		u.Needs[i] = slice.Need{Cost: r.int(), Count: r.int()}
	}
	return rule, u
}

// encode is the script's reply to settles that ran, or were refused.
func encode(settles []*slice.Settle) []any {
	replies := make([]any, len(settles))
	for i, st := range settles {
		if st.Outcome != slice.Ran {
			replies[i] = []any{int64(-1), st.Err.Error()}
			continue
		}
		replies[i] = encodeGrant(&st.Grant)
	}
	return replies
}

// encodeGrant is {flags, now, clock, used, lent, granted, epoch, window, life, admitted...}.
func encodeGrant(g *slice.Grant) []any {
	flags := one(g.Dropped) + 2*one(g.Rebuilt)
	reply := make([]any, 0, 9+len(g.Admitted))
	reply = append(reply, flags, g.Now, g.Clock, strconv.FormatFloat(g.Used, 'g', 17, 64),
		g.Lent, g.Granted, g.Tag.Epoch, g.Tag.Window, g.Life)
	for _, n := range g.Admitted {
		reply = append(reply, n)
	}
	return reply
}

// readReply fills in the outcomes of settles from what the client was told.
func readReply(settles []*slice.Settle, val any, err error) {
	replies, _ := val.([]any)
	for i, st := range settles {
		st.Outcome = slice.Unknown
		switch {
		case err != nil:
			if surelyNotRun(err) {
				st.Outcome = slice.NotRun
			}
		case i < len(replies):
			readGrant(st, replies[i].([]any))
		}
	}
}

// readGrant reads what the lab looks at.
func readGrant(st *slice.Settle, f []any) {
	if len(f) == 2 {
		st.Outcome = slice.NotRun
		return
	}
	st.Outcome = slice.Ran
	st.Grant.Dropped = f[0].(int64)&1 != 0
	st.Grant.Clock, st.Grant.Lent, st.Grant.Granted = f[2].(int64), f[4].(int64), f[5].(int64)
	st.Grant.Used, _ = strconv.ParseFloat(f[3].(string), 64)
}
