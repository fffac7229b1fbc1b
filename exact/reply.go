package exact

import (
	"strconv"

	"github.com/redis/go-redis/v9"

	"github.com/hybridlimit/hybrid/slice"
)

// badArgument is what the script answers to a settle that makes no sense.
const badArgument = "ERR bad argument"

// readReply fills in the outcomes of the settles that one call carried.
func readReply(group []*slice.Settle, c *call) {
	replies, ok := c.reply.([]any)
	if c.err == nil && (!ok || len(replies) != len(group)) {
		c.err = errReply
	}
	for i, e := range group {
		if c.err != nil {
			e.Outcome, e.Err = outcomeOf(c.err), c.err
			continue
		}
		readAccount(e, replies[i])
	}
}

// readAccount fills in the outcome of one settle.
func readAccount(e *slice.Settle, reply any) {
	fields, _ := reply.([]any)
	if len(fields) == 2 {
		if text, ok := fields[1].(string); ok {
			e.Outcome, e.Err = slice.NotRun, refusal(text)
			e.Lone = redis.HasErrorPrefix(e.Err, "WRONGTYPE") || text == badArgument
			return
		}
	}
	g, ok := readGrant(fields, len(e.Usage.Needs))
	if !ok {
		e.Outcome, e.Err = slice.Unknown, errReply
		return
	}
	e.Outcome, e.Grant = slice.Ran, g
}

// readGrant decodes {flags, now, clock, used, lent, granted, epoch, window, life, admitted...}.
func readGrant(f []any, runs int) (g slice.Grant, ok bool) {
	const head = 9
	if len(f) != head+runs {
		return g, false
	}
	var n [head]int64
	for i := range n {
		if i == 3 {
			continue
		}
		if n[i], ok = f[i].(int64); !ok {
			return g, false
		}
	}
	text, _ := f[3].(string)
	used, err := strconv.ParseFloat(text, 64)
	if err != nil {
		return g, false
	}
	g = slice.Grant{
		Dropped: n[0]&1 != 0, Rebuilt: n[0]&2 != 0,
		Now: n[1], Clock: n[2], Used: used, Lent: n[4], Granted: n[5],
		Tag: slice.Tag{Epoch: n[6], Window: n[7]}, Life: n[8],
	}
	return g, readAdmitted(&g, f[head:])
}

func readAdmitted(g *slice.Grant, f []any) bool {
	if len(f) == 0 {
		return true
	}
	g.Admitted = make([]int64, len(f))
	for i := range f {
		k, ok := f[i].(int64)
		if !ok {
			return false
		}
		g.Admitted[i] = k
	}
	return true
}
