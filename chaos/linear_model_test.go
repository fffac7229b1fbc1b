package chaos

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"
)

// This file is what the exact path promises, as a machine of one number: the
// tokens that are taken from an account which gains none while anybody looks.

// verb is what an operation does to an account.
type verb uint8

const (
	take   verb = iota // n tokens, if they are there
	charge             // n tokens, into debt if need be; a refund is negative
	owe                // n tokens that a policy admitted, as far as they are there
	reset              // everything is there again
	peek               // nothing
	edge               // a window ends; done by nobody
)

func (v verb) String() string {
	return [...]string{"take", "charge", "owe", "reset", "peek", "edge"}[v]
}

// known is what a client knows of an operation when it ends.
type known uint8

const (
	admitted known = iota // or, if it is no take, done
	denied
	inDoubt // it may have been done, may yet be done, or never
)

func (k known) String() string { return [...]string{"done", "denied", "in doubt"}[k] }

// op is an operation of a recorded history.
type op struct {
	client   int
	verb     verb
	n        int64
	from, to time.Duration // since the run began

	known known
	used  int64 // tokens in use after it, as the store said; unsaid otherwise
	by    string
}

const unsaid = -1

// forEver is when an operation in doubt ends. It takes effect at any time after
// it was called, or after everything else: nobody can tell that from never.
const forEver = math.MaxInt64

func (o op) String() string {
	said := ""
	if o.used != unsaid {
		said = fmt.Sprintf(", %d in use", o.used)
	}
	until := "?"
	if o.known != inDoubt {
		until = fmt.Sprint(o.to.Round(time.Microsecond))
	}
	return fmt.Sprintf("%10v to %10s client %2d: %v %d: %v%s (%s)", o.from.Round(time.Microsecond), until, o.client, o.verb, o.n, o.known, said, o.by)
}

// machine is an account with so many tokens. Its state is how many are in use.
func machine(tokens int64) porcupine.Model {
	return porcupine.Model{
		Init: func() any { return int64(0) },
		Step: func(state, input, _ any) (bool, any) {
			used, o := state.(int64), input.(op)
			next, fits := o.effect(used, tokens)
			switch {
			case o.known == inDoubt:
				return true, next
			case fits != (o.known == admitted):
				return false, used
			}
			return o.used == unsaid || o.used == next, next
		},
		DescribeOperation: func(input, _ any) string { return input.(op).String() },
	}
}

// effect is what an operation makes of an account, and whether it can be done.
func (o op) effect(used, tokens int64) (next int64, fits bool) {
	switch o.verb {
	case take:
		if used+o.n > tokens {
			return used, false
		}
		return used + o.n, true
	case charge:
		return min(max(used+o.n, 0), max(used, 2*tokens)), true
	case owe:
		return max(used, min(used+o.n, tokens)), true
	case reset, edge:
		return 0, true
	default:
		return used, true
	}
}

// history is what happened to one account.
type history struct {
	key    string
	tokens int64
	ops    []op
}

// linearizable reports whether one order of the operations, in which none moves
// out of the time between its call and its answer, explains all answers. It is
// porcupine.Unknown if that took too long to find out.
func (h history) linearizable() porcupine.CheckResult {
	list := make([]porcupine.Operation, len(h.ops))
	for i, o := range h.ops {
		to := int64(o.to)
		if o.known == inDoubt {
			to = forEver
		}
		list[i] = porcupine.Operation{ClientId: o.client, Input: o, Call: int64(o.from), Return: to}
	}
	return porcupine.CheckOperationsTimeout(machine(h.tokens), list, 20*time.Second)
}

// count is how many operations a client knew so much of.
func (h history) count(k known) (n int) {
	for _, o := range h.ops {
		if o.known == k {
			n++
		}
	}
	return n
}

func (h history) String() string {
	ops := slices.Clone(h.ops)
	slices.SortFunc(ops, func(a, b op) int { return cmp.Compare(a.from, b.from) })
	var b strings.Builder
	fmt.Fprintf(&b, "%s, an account of %d:\n", h.key, h.tokens)
	for _, o := range ops {
		fmt.Fprintln(&b, o)
	}
	return b.String()
}

// The checker tells right histories from wrong ones; all are of an account of 3.
func TestTheCheckerTellsHistoriesApart(t *testing.T) {
	at := func(from, to int, v verb, n int64, k known, used int64) op {
		return op{verb: v, n: n, from: time.Duration(from), to: time.Duration(to), known: k, used: used}
	}
	for name, c := range map[string]struct {
		want porcupine.CheckResult
		ops  []op
	}{
		"all are there, and then none": {porcupine.Ok, []op{
			at(0, 1, take, 2, admitted, 2), at(2, 3, take, 1, admitted, 3), at(4, 5, take, 1, denied, 3)}},
		"one admission too many": {porcupine.Illegal, []op{
			at(0, 9, take, 2, admitted, unsaid), at(0, 9, take, 1, admitted, unsaid), at(0, 9, take, 1, admitted, unsaid)}},
		"a denial of what is there": {porcupine.Illegal, []op{
			at(0, 1, take, 2, admitted, unsaid), at(2, 3, take, 1, denied, unsaid), at(4, 5, take, 1, admitted, unsaid)}},
		"the later comes first while both are under way": {porcupine.Ok, []op{
			at(0, 9, take, 3, denied, unsaid), at(1, 8, take, 1, admitted, unsaid)}},
		"the later comes first when the other had ended": {porcupine.Illegal, []op{
			at(0, 1, take, 3, denied, unsaid), at(2, 3, take, 1, admitted, unsaid)}},
		"doubt that took": {porcupine.Ok, []op{
			at(0, 1, take, 3, inDoubt, unsaid), at(2, 3, take, 1, denied, unsaid)}},
		"doubt that did not take": {porcupine.Ok, []op{
			at(0, 1, take, 3, inDoubt, unsaid), at(2, 3, take, 3, admitted, 3)}},
		"doubt that takes late": {porcupine.Ok, []op{
			at(0, 1, take, 3, inDoubt, unsaid), at(2, 3, peek, 0, admitted, 0), at(4, 5, peek, 0, admitted, 3)}},
		"doubt that took twice": {porcupine.Illegal, []op{
			at(0, 1, take, 1, inDoubt, unsaid), at(2, 3, peek, 0, admitted, 2)}},
		"what a policy admitted is charged as far as there is room": {porcupine.Ok, []op{
			at(0, 1, take, 2, admitted, 2), at(0, 1, owe, 2, inDoubt, unsaid), at(2, 3, peek, 0, admitted, 3)}},
		"a refund that was lost": {porcupine.Illegal, []op{
			at(0, 1, take, 3, admitted, 3), at(2, 3, charge, -1, admitted, unsaid), at(4, 5, take, 1, denied, unsaid)}},
		"a charge that is not seen": {porcupine.Illegal, []op{
			at(0, 1, charge, 2, admitted, unsaid), at(2, 3, peek, 0, admitted, 0)}},
		"debt ends at twice the tokens": {porcupine.Ok, []op{
			at(0, 1, charge, 9, admitted, 6), at(2, 3, reset, 0, admitted, 0), at(4, 5, take, 3, admitted, 3)}},
		"a window gives it all back": {porcupine.Ok, []op{
			at(0, 1, take, 3, admitted, 3), at(2, 2, edge, 0, admitted, unsaid), at(3, 4, take, 3, admitted, 3)}},
		"an edge gives once": {porcupine.Illegal, []op{
			at(0, 1, take, 3, admitted, unsaid), at(2, 2, edge, 0, admitted, unsaid), at(3, 4, take, 3, admitted, unsaid), at(3, 4, take, 1, admitted, unsaid)}},
		"a denial that outlives its window": {porcupine.Illegal, []op{
			at(0, 1, take, 3, admitted, 3), at(2, 2, edge, 0, admitted, unsaid), at(3, 4, take, 1, denied, unsaid)}},
		"another number than there is": {porcupine.Illegal, []op{
			at(0, 1, take, 1, admitted, 2)}},
	} {
		if got := (history{tokens: 3, ops: c.ops}).linearizable(); got != c.want {
			t.Errorf("%s: %v, want %v", name, got, c.want)
		}
	}
}
