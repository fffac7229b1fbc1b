package hybrid

import (
	"net"
	"time"

	"github.com/hybridlimit/hybrid/internal/redistest"
)

// What a test lets happen to a settle, by the short names that stories use.
type fault = redistest.Fault

const (
	none      = redistest.None
	refused   = redistest.Refused
	cutBefore = redistest.CutBefore
	cutAfter  = redistest.CutAfter
	swallowed = redistest.Swallowed
)

// link makes one more way to the fleet's store.
func (f *fleet) link(rtt func() time.Duration) *redistest.Link {
	l := redistest.NewLink(f.dial)
	if rtt != nil {
		l.RTT(rtt)
	}
	return l
}

// dial connects to the store.
func (f *fleet) dial() (net.Conn, error) {
	if f.mini == nil {
		return net.Dial("tcp", f.addr)
	}
	conn, err := f.mini.Dial()
	return skewed{conn, f}, err
}

// skewed is a connection to an embedded store whose clock is not the nodes'.
type skewed struct {
	net.Conn
	f *fleet
}

func (c skewed) Write(p []byte) (int, error) {
	if c.f.skew != 0 {
		c.f.mini.SetTime(time.Now().Add(c.f.skew))
	}
	return c.Conn.Write(p)
}
