package exact

import (
	"bytes"
	"strconv"

	"github.com/hybridlimit/hybrid/slice"
)

// settleCall encodes the contract on top of settle.lua: the accounts, a question about
// each, and the terms that the questions go by.
func settleCall(group []*slice.Settle) *call {
	w := writer{text: make([]byte, 0, 32*len(group)+64), ends: make([]int, 0, len(group)+4)}
	for _, e := range group {
		w.question(w.termsOf(e), &e.Usage)
	}
	for i := range w.known {
		w.terms(&w.known[i])
	}
	c := newCall(settleScript, len(group), len(w.ends))
	for _, e := range group {
		c.args = append(c.args, e.Account)
	}
	c.args = w.appendTo(c.args)
	return c
}

// terms are what many accounts of a batch have in common.
type terms struct {
	rule                 slice.Rule
	tag                  slice.Tag
	least, unit, divisor int64
}

// suit reports whether a settle can go by these terms. What is unused by it may differ.
func (t *terms) suit(e *slice.Settle) bool {
	u := &e.Usage
	return t.rule == e.Rule && t.tag == u.Tag &&
		(u.Want == 0 || t.least == u.Least && t.unit == u.Unit && t.divisor == u.Divisor)
}

// lookBack is among how many of the last terms an account's are looked for. Terms that are
// written twice cost the server less than a long search costs the node.
const lookBack = 8

// writer makes the arguments of a call, all in one text.
type writer struct {
	text  []byte
	ends  []int // of the arguments in text
	known []terms
}

// termsOf returns the number of a settle's terms, from 1.
func (w *writer) termsOf(e *slice.Settle) int {
	for i := len(w.known) - 1; i >= max(0, len(w.known)-lookBack); i-- {
		if w.known[i].suit(e) {
			return i + 1
		}
	}
	t := terms{rule: e.Rule, tag: e.Usage.Tag}
	if u := &e.Usage; u.Want != 0 {
		t.least, t.unit, t.divisor = u.Least, u.Unit, u.Divisor
	}
	w.known = append(w.known, t)
	return len(w.known)
}

// question writes what one settle says and asks: nothing of a slice that it does not report.
func (w *writer) question(terms int, u *slice.Usage) {
	w.text = strconv.AppendInt(w.text, int64(terms), 10)
	if u.Tag.Epoch == 0 {
		w.text = append(w.text, " 0 0 0"...)
	} else {
		w.integer(u.Spent)
		w.integer(u.Returned)
		w.integer(u.Held)
	}
	w.integer(u.Want)
	w.real(u.Charged)
	w.undone(u)
	w.real(u.Fallback)
	for i := range u.Needs {
		w.integer(u.Needs[i].Cost)
		w.integer(u.Needs[i].Count)
	}
	w.ends = append(w.ends, len(w.text))
}

// undone adds to the charge what it undoes: most settles undo nothing, and are as short as
// before.
func (w *writer) undone(u *slice.Usage) {
	if u.Return == 0 {
		return
	}
	w.text = append(w.text, '@')
	w.number(u.Return)
	w.text = strconv.AppendInt(append(w.text, '@'), u.ReturnAt, 10)
}

func (w *writer) terms(t *terms) {
	w.text = strconv.AppendInt(w.text, t.rule.Window, 10)
	w.integer(t.rule.Burst)
	w.real(t.rule.Rate)
	for _, v := range [...]int64{t.tag.Epoch, t.tag.Window, t.least, t.unit, t.divisor} {
		w.integer(v)
	}
	w.ends = append(w.ends, len(w.text))
}

func (w *writer) integer(v int64) { w.text = strconv.AppendInt(append(w.text, ' '), v, 10) }

// real writes a number behind a space.
func (w *writer) real(v float64) {
	w.text = append(w.text, ' ')
	w.number(v)
}

// number formats v so that the script reads the same double. An exponent gets a point
// before it: the Lua of miniredis does not read 1e-06.
func (w *writer) number(v float64) {
	if v == 0 {
		w.text = append(w.text, '0') // also for -0
		return
	}
	from := len(w.text)
	w.text = strconv.AppendFloat(w.text, v, 'g', -1, 64)
	mantissa, exponent, ok := bytes.Cut(w.text[from:], []byte{'e'})
	if ok && !bytes.Contains(mantissa, []byte{'.'}) {
		tail := ".0e" + string(exponent)
		w.text = append(w.text[:from+len(mantissa)], tail...)
	}
}

// appendTo appends the arguments, which share one string.
func (w *writer) appendTo(args []any) []any {
	text, from := string(w.text), 0
	for _, end := range w.ends {
		args = append(args, text[from:end])
		from = end
	}
	return args
}
