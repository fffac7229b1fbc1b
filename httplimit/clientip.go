package httplimit

import (
	"cmp"
	"fmt"
	"net/http"

	"github.com/hybridlimit/hybrid/internal/clientip"
)

// IPOptions are the settings of RemoteIP and ClientIP. The zero value of each
// field means its default.
type IPOptions struct {
	// Header is where proxies append the address that they were asked from;
	// default "X-Forwarded-For". RemoteIP does not look at it.
	Header string

	// IPv4Bits and IPv6Bits are how much of an address counts, 1 to 32 and 1 to
	// 128: all of an IPv4 address by default, and 64 bits of an IPv6 one, which is
	// the least that a customer of a provider gets, and can choose addresses from at
	// will. Link-local addresses count in full.
	IPv4Bits, IPv6Bits int
}

// RemoteIP is the address that the connection came from. Behind a proxy that is
// the proxy's, so all clients would share a budget: use ClientIP there.
func RemoteIP(opts *IPOptions) Key { return ClientIP(nil, opts) }

// ClientIP is the address of the client behind proxies that are trusted: CIDRs
// such as "10.0.0.0/8", single addresses, or "unix" for whoever connects through a
// Unix socket.
//
// Nothing else is trusted. Who is not trusted is the client, whatever headers it
// sends. Of a proxy that is, the header is read from the right, over further proxies
// that are trusted, to the first address that is not: what a client wrote itself is
// further left. An entry that is no address, the 33rd entry, or the header's end stops
// the walk; the key is then the last proxy that was trusted.
//
// A key is the address, as in "192.0.2.1", or a network, as in
// "2001:db8:1:2::/64". Ports and zones do not count, and ::ffff:192.0.2.1 is 192.0.2.1.
//
// Middleware before this one must leave Request.RemoteAddr alone: some put there
// what any client claims.
func ClientIP(trusted []string, opts *IPOptions) Key {
	var o IPOptions
	if opts != nil {
		o = *opts
	}
	field, err := o.field()
	if err != nil {
		return Key{err: err}
	}
	proxies, err := clientip.New(o.IPv4Bits, o.IPv6Bits, trusted, invalid)
	if err != nil {
		return Key{err: err}
	}
	return Key{find: (&clientIP{field, proxies}).key}
}

// field is the name of the header, canonical.
func (o *IPOptions) field() (string, error) {
	name := cmp.Or(o.Header, "X-Forwarded-For")
	if err := checkName("httplimit.IPOptions.Header", name); err != nil {
		return "", err
	}
	name = http.CanonicalHeaderKey(name)
	if name == "Forwarded" { // for=…;proto=…: all its entries would stop the walk
		return "", invalid("IPOptions.Header", name, "a header that is a plain list of addresses")
	}
	return name, nil
}

// clientIP is a ClientIP, ready to look.
type clientIP struct {
	field   string // canonical
	proxies *clientip.Proxies
}

var errNoAddress = fmt.Errorf("%w: nobody that is trusted names an IP address", ErrNoKey)

// key is the key of a request's client.
func (c *clientIP) key(r Request) (string, error) {
	remote := r.RemoteAddr()
	at, ok := clientip.Parse(remote)
	if c.proxies.Trust(at, ok, clientip.IsSocket(remote)) {
		at, ok = c.proxies.Client(at, ok, r.Header(c.field))
	}
	if !ok {
		return "", errNoAddress
	}
	return c.proxies.Key(at), nil
}
