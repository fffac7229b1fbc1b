package slice

import "fmt"

// sim is one node's cell and lease beside a naive account: plain integers for
// what was granted, spent and returned, moved at the moments the protocol names.
// All methods report the first broken invariant.
type sim struct {
	cell  Cell
	lease Lease
	dead  Watermark
	now   Tick
	epoch int64

	flight  *Usage // the settle in flight
	renews  Tick   // the expiry that its grant would have
	inGrant int64  // tokens that the store adds if it runs

	expiry   Tick  // of the lease as the node knows it
	known    int64 // the store's slot of this node: what it believes to be out
	spent    int64 // admitted by the cell and not reported
	granted  int64 // all grants that arrived
	admitted int64 // all takes, less what was given back
	returned int64 // all returns that ran, or may have
	lapsed   int64 // all tokens that went with a lease
}

func (s *sim) take(n int64) error {
	before := s.cell.Tokens()
	left, ok := s.cell.Take(n, &s.dead)
	if want := n <= before && s.expiry.After(s.now); ok != want {
		return fmt.Errorf("take of %d from %d at tick %d, expiry %d: %t", n, before, s.now, s.expiry, ok)
	}
	if ok {
		s.spent += n
		s.admitted += n
		if left != before-n {
			return fmt.Errorf("%d left of %d less %d", left, before, n)
		}
	}
	return s.check()
}

func (s *sim) giveBack(n int64) error {
	if s.lease.Return(&s.cell, n, &s.dead) {
		s.spent -= n
		s.admitted -= n
	}
	return s.check()
}

func (s *sim) pass(ticks Tick) error {
	s.now += ticks
	s.dead.Pass(s.now)
	return s.check()
}

// report starts a settle. With needs keep is 0.
func (s *sim) report(keep, grant, life int64) error {
	if s.flight != nil {
		return nil
	}
	marked, before := s.lease.InDoubt(), s.cell.Tokens()
	u := s.lease.Report(&s.cell, keep)
	if marked && (u.Tag != Tag{} || grant > 0) {
		grant = 0 // only needs
	}
	if !marked && s.lease.Holds() {
		if u.Spent != s.spent || u.Held != min(before, keep) || u.Returned != before-u.Held {
			return fmt.Errorf("reported %+v, spent %d of %d", u, s.spent, before)
		}
		s.spent = 0
	} else if u.Spent+u.Returned+u.Held != 0 {
		return fmt.Errorf("reported %+v without a lease to report", u)
	}
	s.flight, s.inGrant, s.renews = &u, grant, s.now+Tick(life)
	return s.check()
}

// runs is the store's side of the settle in flight.
func (s *sim) runs(dropped bool) Grant {
	u := s.flight
	s.epoch++
	g := Grant{Dropped: dropped && u.Tag != Tag{}, Granted: s.inGrant, Tag: Tag{Epoch: s.epoch}}
	if u.Tag != (Tag{}) {
		s.known = u.Held
	}
	if g.Dropped {
		s.known = 0
	}
	s.known += g.Granted
	return g
}

func (s *sim) ran(dropped bool) error {
	if s.flight == nil {
		return nil
	}
	u, marked := s.flight, s.lease.InDoubt()
	s.flight = nil
	if marked {
		s.lease.Ran(&s.cell, Grant{}, s.renews)
		return s.check()
	}
	tokens := s.cell.Tokens()
	s.flight = u
	g := s.runs(dropped)
	s.flight = nil
	s.lease.Ran(&s.cell, g, s.renews)
	s.granted += g.Granted
	s.returned += u.Returned
	if g.Dropped {
		s.lapsed += tokens
		s.spent = 0
	}
	if s.lease.Holds() {
		s.expiry = s.renews
	}
	return s.check()
}

func (s *sim) notRun() error {
	if s.flight == nil {
		return nil
	}
	s.lease.NotRun(&s.cell)
	s.spent += s.flight.Spent
	s.flight = nil
	return s.check()
}

// lost ends the settle without a reply; it may have run.
func (s *sim) lost(hasRun bool) error {
	if s.flight == nil {
		return nil
	}
	u, marked := *s.flight, s.lease.InDoubt()
	if hasRun && !marked {
		s.runs(false)
	}
	s.flight = nil
	s.lease.Lost()
	if !marked {
		s.returned += u.Returned
	}
	if u.Held > 0 && !s.lease.InDoubt() {
		return fmt.Errorf("the outcome of %+v is unknown, and the lease goes on", u)
	}
	return s.check()
}

func (s *sim) lapse() error {
	if s.flight != nil {
		return nil
	}
	s.lapsed += s.cell.Tokens()
	s.lease.Lapse(&s.cell)
	s.spent, s.known = 0, 0
	return s.check()
}

// check is the ledger: every token granted is admitted, returned, gone with a
// lease, or here. The store believes no less to be out than the node holds.
func (s *sim) check() error {
	tokens, offered := s.cell.Tokens(), int64(0)
	if s.flight != nil && !s.lease.InDoubt() {
		offered = s.flight.Returned
	}
	if sum := s.admitted + s.returned + s.lapsed + tokens + offered; sum != s.granted {
		return fmt.Errorf("granted %d, but admitted %d + returned %d + lapsed %d + here %d + offered %d",
			s.granted, s.admitted, s.returned, s.lapsed, tokens, offered)
	}
	if s.lease.Unreported(&s.cell) < 0 {
		return fmt.Errorf("unreported %d", s.lease.Unreported(&s.cell))
	}
	if !s.lease.InDoubt() && s.lease.Holds() {
		if got := s.lease.Unreported(&s.cell); got != s.spent {
			return fmt.Errorf("unreported %d, spent %d", got, s.spent)
		}
	}
	if s.lease.Holds() && !s.lease.InDoubt() && s.flight == nil && tokens+s.spent > s.known {
		return fmt.Errorf("holds %d and spent %d, the store knows of %d", tokens, s.spent, s.known)
	}
	if !s.expiry.After(s.now) && s.cell.Alive(&s.dead) > 0 {
		return fmt.Errorf("%d tokens are alive after the expiry", s.cell.Alive(&s.dead))
	}
	if !s.lease.Holds() && s.flight == nil && tokens > 0 {
		return fmt.Errorf("%d tokens without a lease", tokens)
	}
	return nil
}

// step does what two bytes say; every pair means something.
func (s *sim) step(op, arg byte) error {
	n := int64(arg)
	switch op % 12 {
	case 0, 1, 2:
		return s.take(n/16 + 1)
	case 3:
		return s.report(0, 0, 20) // with needs
	case 4:
		return s.report(n/2, 0, 20) // a renewal
	case 5:
		return s.report(n/4, n, 20) // a refill
	case 6, 7:
		return s.ran(n > 230)
	case 8:
		return s.notRun()
	case 9:
		return s.lost(n%2 == 0)
	case 10:
		return s.giveBack(n/32 + 1)
	default:
		if n > 240 {
			return s.lapse()
		}
		return s.pass(Tick(n / 32))
	}
}

// stepAll stops at the first broken invariant. A lease that is marked and over
// lapses, as its owner sees to.
func (s *sim) stepAll(ops []byte) error {
	for i := 0; i+1 < len(ops); i += 2 {
		if err := s.step(ops[i], ops[i+1]); err != nil {
			return fmt.Errorf("step %d (%d, %d): %w", i/2, ops[i]%12, ops[i+1], err)
		}
		if s.lease.InDoubt() && s.flight == nil && s.cell.Expired(&s.dead) {
			if err := s.lapse(); err != nil {
				return err
			}
		}
	}
	return nil
}
