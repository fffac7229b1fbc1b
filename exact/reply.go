package exact

import (
	"math"
	"strconv"

	"github.com/redis/go-redis/v9"

	"github.com/hybridlimit/hybrid/slice"
)

// badArgument is what the script answers to a settle that makes no sense.
const badArgument = "ERR bad argument"

// refused stands for the flags of an account that was not settled; the reason follows.
const refused = -1

// readReply fills in the outcomes of the settles that one call carried. Its reply is
// {clock, flags, ahead, used, lent, granted, admitted..., flags, ...}.
func readReply(group []*slice.Settle, c *call) {
	if c.err != nil {
		for _, e := range group {
			e.Outcome, e.Err = outcomeOf(c.err), c.err
		}
		return
	}
	r := newReader(group, c.reply)
	for _, e := range group {
		r.account(e)
	}
	if r.broken || len(r.fields) > 0 { // it answers something else
		for _, e := range group {
			e.Outcome, e.Err, e.Lone, e.Grant = slice.Unknown, ErrReply, false, slice.Grant{}
		}
	}
}

// reader takes one field of a reply after the other. It is broken once one is not what
// it should be.
type reader struct {
	fields   []any
	broken   bool
	clock    int64
	admitted []int64 // room for those of all accounts
}

func newReader(group []*slice.Settle, reply any) *reader {
	runs := 0
	for _, e := range group {
		runs += len(e.Usage.Needs)
	}
	r := &reader{}
	if runs > 0 {
		r.admitted = make([]int64, runs)
	}
	r.fields, _ = reply.([]any)
	r.clock = r.integer()
	return r
}

// account fills in the outcome of one settle.
func (r *reader) account(e *slice.Settle) {
	flags := r.integer()
	if flags == refused {
		text := r.text()
		e.Outcome, e.Err = slice.NotRun, refusal(text)
		e.Lone = redis.HasErrorPrefix(e.Err, "WRONGTYPE") || text == badArgument
		return
	}
	e.Outcome, e.Grant = slice.Ran, r.grant(e, flags)
}

// grant reads what a settle led to. The lease that it speaks of is the one of its time.
// More than was asked for, or less than nothing, no script of ours has answered.
func (r *reader) grant(e *slice.Settle, flags int64) slice.Grant {
	g := slice.Grant{Dropped: flags&1 != 0, Rebuilt: flags&2 != 0, Clock: r.clock}
	g.Now = r.clock + r.integer()
	g.Used, g.Lent, g.Granted = r.real(), r.integer(), r.integer()
	g.Tag.Epoch = g.Now / slice.Epoch
	g.Life = (g.Tag.Epoch+2)*slice.Epoch - g.Now
	if w := e.Rule.Window; w > 0 {
		g.Tag.Window = g.Now / w
		g.Life = min(g.Life, (g.Tag.Window+1)*w-g.Now)
	}
	if n := len(e.Usage.Needs); n > 0 {
		g.Admitted, r.admitted = r.admitted[:n:n], r.admitted[n:]
		for i := range g.Admitted {
			g.Admitted[i] = r.integer()
			r.broken = r.broken || g.Admitted[i] < 0 || g.Admitted[i] > max(e.Usage.Needs[i].Count, 1)
		}
	}
	r.broken = r.broken || flags < 0 || g.Now < g.Clock || g.Clock < 0
	r.broken = r.broken || !(g.Used >= 0 && g.Used <= math.MaxFloat64) || g.Lent < 0 || g.Granted < 0 || g.Granted > e.Usage.Want
	return g
}

func (r *reader) next() (field any) {
	if len(r.fields) == 0 {
		r.broken = true
		return nil
	}
	field, r.fields = r.fields[0], r.fields[1:]
	return field
}

func (r *reader) integer() int64 {
	v, ok := r.next().(int64)
	r.broken = r.broken || !ok
	return v
}

func (r *reader) text() string {
	v, ok := r.next().(string)
	r.broken = r.broken || !ok
	return v
}

func (r *reader) real() float64 {
	v, err := strconv.ParseFloat(r.text(), 64)
	r.broken = r.broken || err != nil
	return v
}
