package key

import "github.com/hybridlimit/hybrid/slice"

// debt answers: what has been used that the store does not know of?
//
// A double charge only denies; a lost one would over-admit. So charges of unknown
// outcome are told again, and what is given back is not.
type debt struct {
	charged  float64  // tokens to charge with the next settle, net of refunds
	admitted float64  // tokens that the failure policy admitted
	window   int64    // that both belong to; 0: none, or not known
	back     *returns // nil: none
}

// returns is what the key's own requests took and gave back: parts of a request that
// another limit denied. It says when the first of them was taken, as what has drained
// since must not come back twice.
type returns struct {
	tokens float64
	at     int64 // µs of the store
	window int64
}

// owes reports whether there is something to tell.
func (d *debt) owes() bool { return d.charged != 0 || d.admitted != 0 || d.back != nil }

// charge adds to what the next settle charges, within what a settle can say.
func (d *debt) charge(tokens float64) {
	d.charged = min(max(d.charged+tokens, -slice.MaxTokens), slice.MaxTokens)
}

// forget drops all of it.
func (d *debt) forget() { *d = debt{window: d.window} }

// enter drops what belongs to a window that is over, before anything is charged to
// the present one.
func (d *debt) enter(window int64) {
	if window == 0 || window == d.window {
		return
	}
	if d.window != 0 {
		d.forget()
	}
	d.window = window
}

// giveBack adds tokens that were taken at a moment of the store's clock. What was taken
// in another window than the rest is dropped: it errs towards denial.
func (d *debt) giveBack(tokens float64, at, window int64) {
	switch r := d.back; {
	case r == nil:
		d.back = &returns{tokens: tokens, at: at, window: window}
	case r.window == window:
		r.tokens, r.at = min(r.tokens+tokens, slice.MaxTokens), min(r.at, at)
	}
}

// tell moves the debt into a settle. admitted is the part of the policy's admissions
// that the account is charged for.
func (d *debt) tell(u *slice.Usage, floor, admitted float64) {
	u.Charged, u.Fallback = d.charged+floor, admitted
	d.charged, d.admitted = 0, 0
	if (u.Charged != 0 || u.Fallback != 0) && u.Tag == (slice.Tag{}) {
		u.Tag.Window = d.window
	}
	if r, w := d.back, u.Tag.Window; r != nil && (w == r.window || w == 0) {
		u.Return, u.ReturnAt, u.Tag.Window = r.tokens, r.at, r.window
	}
	d.back = nil
}

// requeue takes back what a settle that did not run was to charge.
func (d *debt) requeue(u slice.Usage) {
	if !d.current(&u) {
		return
	}
	d.charge(u.Charged)
	d.admitted += u.Fallback
	if u.Return > 0 {
		d.giveBack(u.Return, u.ReturnAt, u.Tag.Window)
	}
}

// requeueUnanswered takes back what a settle of unknown outcome was to charge, and
// none of what it gave back.
func (d *debt) requeueUnanswered(u slice.Usage) {
	u.Charged, u.Return = max(0, u.Charged), 0
	d.requeue(u)
}

// current reports whether what a settle was to charge still counts: not if the next
// window has been charged while it was under way.
func (d *debt) current(u *slice.Usage) bool {
	return u.Tag.Window == 0 || d.window == 0 || u.Tag.Window == d.window
}
