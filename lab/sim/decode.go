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
	return ok && strings.HasPrefix(key, everyAccount)
}

// scriptKey is the first key of a command that runs a script.
func scriptKey(cmd redis.Cmder) (key string, ok bool) {
	if name := cmd.Name(); name != "evalsha" && name != "eval" {
		return "", false
	}
	key, ok = cmd.Args()[3].(string)
	return key, ok
}

// decode reads {"evalsha", sha, keys, key..., question..., terms...}.
func decode(args []any) []*slice.Settle {
	n := args[2].(int)
	keys, questions, terms := args[3:3+n], args[3+n:3+2*n], args[3+2*n:]
	batch := make([]slice.Settle, n)
	all := make([]*slice.Settle, n)
	for i := range batch {
		all[i] = &batch[i]
		batch[i].Account = keys[i].(string)
		question := wordsOf(questions[i])
		shared := wordsOf(terms[question.int()-1])
		shared.terms(&batch[i])
		question.usage(&batch[i].Usage)
	}
	return all
}

// words are what is left of an argument.
type words []string

func wordsOf(arg any) words { return strings.Split(arg.(string), " ") }

func (w *words) next() string {
	word := (*w)[0]
	*w = (*w)[1:]
	return word
}

func (w *words) int() int64 {
	v, err := strconv.ParseInt(w.next(), 10, 64)
	if err != nil {
		panic(fmt.Sprintf("sim: a settle says what is no whole number: %v, before %q", err, *w))
	}
	return v
}

func (w *words) real() float64 {
	v, err := strconv.ParseFloat(w.next(), 64)
	if err != nil {
		panic(fmt.Sprintf("sim: a settle says what is no number: %v, before %q", err, *w))
	}
	return v
}

// terms reads what many accounts share.
func (w *words) terms(st *slice.Settle) {
	st.Rule = slice.Rule{Window: w.int(), Burst: w.int(), Rate: w.real()}
	st.Usage.Tag = slice.Tag{Epoch: w.int(), Window: w.int()}
	st.Usage.Least, st.Usage.Unit, st.Usage.Divisor = w.int(), w.int(), w.int()
}

// charged reads what a settle charges and undoes: "c" or "c@n@t".
func (w *words) charged(u *slice.Usage) {
	parts := strings.Split(w.next(), "@")
	numbers := make([]float64, len(parts))
	for i, part := range parts {
		v, err := strconv.ParseFloat(part, 64)
		if err != nil {
			panic(fmt.Sprintf("sim: a settle says what is no number: %v", err))
		}
		numbers[i] = v
	}
	u.Charged = numbers[0]
	if len(numbers) == 3 {
		u.Return, u.ReturnAt = numbers[1], int64(numbers[2])
	}
}

// usage reads the rest of a question.
func (w *words) usage(u *slice.Usage) {
	u.Spent, u.Returned, u.Held = w.int(), w.int(), w.int()
	u.Want = w.int()
	w.charged(u)
	u.Fallback = w.real()
	for len(*w) > 0 {
		u.Needs = append(u.Needs, slice.Need{Cost: w.int(), Count: w.int()})
	}
}

// encode is the script's reply to settles that ran at one moment, or were refused:
// {clock, flags, ahead, used, lent, granted, admitted..., flags, ...}.
func encode(settles []*slice.Settle) []any {
	reply := make([]any, 1, 1+6*len(settles))
	reply[0] = int64(0)
	for _, st := range settles {
		if st.Outcome != slice.Ran {
			reply = append(reply, int64(-1), st.Err.Error())
			continue
		}
		g := &st.Grant
		reply[0] = g.Clock
		reply = append(reply, one(g.Dropped)+2*one(g.Rebuilt), g.Now-g.Clock,
			strconv.FormatFloat(g.Used, 'g', 17, 64), g.Lent, g.Granted)
		for _, n := range g.Admitted {
			reply = append(reply, n)
		}
	}
	return reply
}

// readReply fills in the outcomes of settles from what the client was told.
func readReply(settles []*slice.Settle, val any, err error) {
	fields, _ := val.([]any)
	next := 1 // behind the clock
	for _, st := range settles {
		st.Outcome = slice.Unknown
		switch {
		case err != nil:
			if surelyNotRun(err) {
				st.Outcome = slice.NotRun
			}
		case next < len(fields):
			st.Grant.Clock = fields[0].(int64)
			next += readGrant(st, fields[next:])
		}
	}
}

// readGrant reads what the lab looks at, and returns how many fields there are.
func readGrant(st *slice.Settle, f []any) int {
	if f[0] == int64(-1) {
		st.Outcome = slice.NotRun
		return 2
	}
	const head = 5
	st.Outcome = slice.Ran
	st.Grant.Dropped = f[0].(int64)&1 != 0
	st.Grant.Used, _ = strconv.ParseFloat(f[2].(string), 64)
	st.Grant.Lent, st.Grant.Granted = f[3].(int64), f[4].(int64)
	for _, n := range f[head : head+len(st.Usage.Needs)] {
		st.Grant.Admitted = append(st.Grant.Admitted, n.(int64))
	}
	return head + len(st.Usage.Needs)
}
