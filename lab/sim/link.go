package sim

import (
	"errors"
	"net"
	"sync"
	"time"
)

// link is one node's way to the store: half a round trip each way, and what goes
// wrong on it. Both stores send through it.
type link struct {
	trip  Trip
	salt  uint64 // makes the delays of this link its own
	meter *meter // counts what passes

	mu     sync.Mutex
	down   bool      // no connection can be made, and there is none
	hole   bool      // what is sent gets lost, and connections seem well
	frozen time.Time // until then nothing moves, and nothing gets lost
	fates  []fate    // of the next calls that settle, one each
	epoch  int       // how often connections were broken
	conns  map[*linkConn]bool
}

// fate is what becomes of one call that settles.
type fate uint8

const (
	arrives   fate = iota
	refused        // the store says that it is loading
	cutBefore      // the connection breaks before the store sees the call
	cutAfter       // the store runs it, and the connection breaks before the reply
	swallowed      // the store runs it, and the reply never comes
)

var errRefused = &net.OpError{Op: "dial", Net: "tcp", Err: errors.New("connection refused")}

func newLink(trip Trip, salt uint64, m *meter) *link {
	return &link{trip: trip, salt: mix(salt), meter: m, conns: map[*linkConn]bool{}}
}

// due is when a message that is sent now arrives: half a round trip later, and
// not while the link stands still. Which message it is decides how long its trip
// takes, and by a few hundred nanoseconds also where all take the same: two
// messages never arrive at one moment, so it is not left to chance which is first.
func (l *link) due(message uint64) time.Time {
	now := time.Now()
	random := mix(l.salt ^ mix(message^uint64(now.UnixNano())))
	half := l.trip.Draw(float64(random>>11)/(1<<53)) / 2
	at := now.Add(half)
	l.mu.Lock()
	defer l.mu.Unlock()
	if at.Before(l.frozen) {
		at = l.frozen
	}
	return at.Add(time.Duration(random % 997))
}

// mix is the finalizer of splitmix64: it makes any bits look random.
func mix(x uint64) uint64 {
	x += 0x9e3779b97f4a7c15
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}

// cut breaks all connections and refuses new ones.
func (l *link) cut() {
	l.mu.Lock()
	l.down = true
	l.epoch++
	var conns []*linkConn
	for c := range l.conns {
		conns = append(conns, c)
	}
	l.mu.Unlock()
	for _, c := range conns {
		c.cut()
	}
}

// restore lets connections be made again.
func (l *link) restore() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.down = false
}

// blackHole makes the link accept everything and answer nothing.
func (l *link) blackHole(on bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.hole = on
}

// freeze makes everything stand still on the link for a while.
func (l *link) freeze(d time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.frozen = time.Now().Add(d)
}

// inject lets the next calls that settle meet their fates, one each.
func (l *link) inject(f fate) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.fates = append(l.fates, f)
}

// meet says what becomes of a call at the store's door.
func (l *link) meet(settles bool) fate {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !settles || len(l.fates) == 0 {
		return arrives
	}
	f := l.fates[0]
	l.fates = append([]fate(nil), l.fates[1:]...)
	return f
}

// connected says whether calls can be sent, and numbers the connection that they
// are sent through.
func (l *link) connected() (epoch int, ok bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.epoch, !l.down
}

// way is what became of a message on its way.
type way uint8

const (
	well   way = iota
	broken     // its connection is no more
	gone       // it got lost, and nobody notices
)

// look says what became of a message that was sent through a connection.
func (l *link) look(epoch int) way {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case l.epoch != epoch:
		return broken
	case l.hole:
		return gone
	}
	return well
}
