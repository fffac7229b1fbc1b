package httplimit

import (
	"fmt"
	"net/http"
	"net/netip"
	"strings"
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
	c, err := o.resolve()
	if err != nil {
		return Key{err: err}
	}
	for _, t := range trusted {
		if err := c.trust(t); err != nil {
			return Key{err: err}
		}
	}
	return Key{find: c.key}
}

// clientIP is a ClientIP, ready to look.
type clientIP struct {
	field    string // canonical
	v4, v6   int    // bits that count
	networks []netip.Prefix
	unix     bool
}

func (o *IPOptions) resolve() (*clientIP, error) {
	c := &clientIP{field: orDefault(o.Header, "X-Forwarded-For"), v4: orDefault(o.IPv4Bits, 32), v6: orDefault(o.IPv6Bits, 64)}
	switch {
	case c.v4 < 1 || c.v4 > 32:
		return nil, invalid("IPOptions.IPv4Bits", o.IPv4Bits, "1 to 32")
	case c.v6 < 1 || c.v6 > 128:
		return nil, invalid("IPOptions.IPv6Bits", o.IPv6Bits, "1 to 128")
	}
	if err := checkName("IPOptions.Header", c.field); err != nil {
		return nil, err
	}
	c.field = http.CanonicalHeaderKey(c.field)
	if c.field == "Forwarded" { // for=…;proto=…: all its entries would stop the walk
		return nil, invalid("IPOptions.Header", c.field, "a header that is a plain list of addresses")
	}
	return c, nil
}

// trust adds a network, an address or "unix".
func (c *clientIP) trust(text string) error {
	if text == "unix" {
		c.unix = true
		return nil
	}
	network, err := netip.ParsePrefix(text)
	if err != nil {
		addr, err := netip.ParseAddr(text)
		if err != nil || addr.Zone() != "" {
			return invalid("ClientIP", fmt.Sprintf("%.64q", text), `CIDRs such as "10.0.0.0/8", addresses, and "unix"`)
		}
		network = netip.PrefixFrom(addr, addr.BitLen())
	}
	if network.Bits() == 0 {
		return invalid("ClientIP", fmt.Sprintf("%.64q", text), "networks that are not all addresses: each client would choose its own key")
	}
	if network.Addr().Is4In6() { // requests' addresses are unmapped before they are looked up
		if network.Bits() <= 96 {
			return invalid("ClientIP", fmt.Sprintf("%.64q", text), "IPv4 networks in their own notation")
		}
		network = netip.PrefixFrom(network.Addr().Unmap(), network.Bits()-96)
	}
	c.networks = append(c.networks, network.Masked())
	return nil
}

func (c *clientIP) trusts(addr netip.Addr) bool {
	for _, network := range c.networks {
		if network.Contains(addr) {
			return true
		}
	}
	return false
}

// key is the key of a request's client.
func (c *clientIP) key(r Request) (string, error) {
	at, ok := c.client(r)
	if !ok {
		return "", errNoAddress
	}
	return c.keyOf(at), nil
}

var errNoAddress = fmt.Errorf("%w: nobody that is trusted names an IP address", ErrNoKey)

// keyOf writes down what counts of an address.
func (c *clientIP) keyOf(at hop) string {
	bits := c.v6
	switch {
	case at.addr.Is4():
		bits = c.v4
	case at.addr.IsLinkLocalUnicast(): // all links share one network
		bits = 128
	}
	switch {
	case bits < at.addr.BitLen():
		network, _ := at.addr.Prefix(bits) // fails for zones, which are cut off
		var room [len("ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff/128")]byte
		return string(network.AppendTo(room[:0])) // String would allocate twice
	case at.text != "":
		return at.text
	default:
		return at.addr.String()
	}
}

// Bounds of what is looked at in a header that anybody may have written.
const (
	mostHops   = 32
	longestHop = 64 // an IPv6 address with brackets, a port and a zone
)

// client walks from the peer to the client. Without ok there is no address at all.
func (c *clientIP) client(r Request) (at hop, ok bool) {
	remote := r.RemoteAddr()
	at, ok = parseHop(remote)
	switch {
	case !ok && !(c.unix && isSocket(remote)):
		return hop{}, false
	case ok && !c.trusts(at.addr):
		return at, true
	}
	lines := r.Header(c.field)
	for hops := 0; len(lines) > 0; {
		line := lines[len(lines)-1]
		for more := true; more; hops++ {
			var entry string
			entry, line, more = cutLast(line)
			next, valid := parseHop(entry)
			if !valid || hops == mostHops {
				return at, ok
			}
			at, ok = next, true
			if !c.trusts(at.addr) {
				return at, true
			}
		}
		lines = lines[:len(lines)-1]
	}
	return at, ok
}

// cutLast cuts the last entry off a list. It looks at no more than an entry may
// be long, with some space around it: what is longer comes back uncut, and is no
// address.
func cutLast(list string) (entry, rest string, more bool) {
	const window = 2 * longestHop
	from := max(0, len(list)-window)
	comma := strings.LastIndexByte(list[from:], ',')
	switch {
	case comma >= 0:
		return strings.Trim(list[from+comma+1:], " \t"), list[:from+comma], true
	case from > 0:
		return list, "", false
	default:
		return strings.Trim(list, " \t"), "", false
	}
}

// hop is an address of the chain from a client to here.
type hop struct {
	addr netip.Addr // no zone, and never IPv4 in IPv6
	text string     // what addr.String returns, where that is there already
}

// parseHop reads an address as http.Server and proxies write them: alone, with a
// port, in brackets, in brackets with a port.
func parseHop(s string) (hop, bool) {
	if s == "" || len(s) > longestHop {
		return hop{}, false
	}
	host, port, bracketed := s, "", s[0] == '['
	switch colon := strings.IndexByte(s, ':'); {
	case bracketed:
		end := strings.IndexByte(s, ']')
		if end < 0 {
			return hop{}, false
		}
		host, port = s[1:end], s[end+1:]
	case colon >= 0 && colon == strings.LastIndexByte(s, ':'):
		host, port = s[:colon], s[colon:]
	}
	addr, err := netip.ParseAddr(host)
	if err != nil || !isPort(port) || bracketed && addr.Is4() {
		return hop{}, false
	}
	if addr.Is4() {
		return hop{addr: addr, text: host}, true // there is one way to write it
	}
	return hop{addr: addr.WithZone("").Unmap()}, true
}

// isPort reports whether s is nothing, or a colon and a port.
func isPort(s string) bool {
	if s == "" {
		return true
	}
	for i := 1; i < len(s); i++ {
		if s[i] < '0' || s[i] > '9' {
			return false
		}
	}
	return s[0] == ':' && len(s) >= 2 && len(s) <= 6
}

// isSocket reports whether a server has called the other end of a Unix socket so.
func isSocket(remote string) bool { return remote == "" || remote[0] == '@' || remote[0] == '/' }
