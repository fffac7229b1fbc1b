package hybridgrpc

import (
	"context"
	"fmt"
	"net"
	"net/netip"
	"strings"

	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/peer"

	"github.com/hybridlimit/hybrid/httplimit"
)

// IPOptions are the settings of PeerIP and ClientIP: those of httplimit. Its Header is
// a piece of metadata here, "x-forwarded-for" by default.
type IPOptions = httplimit.IPOptions

// PeerIP is the address that the connection came from; of an IPv6 one its /64, which is
// the least that a customer of a provider gets, and can choose addresses from at will.
// Behind a proxy that is the proxy's, so all clients would share a budget: use ClientIP
// there.
func PeerIP(opts *IPOptions) Key { return ClientIP(nil, opts) }

// ClientIP is the address of the client behind proxies that are trusted: CIDRs such as
// "10.0.0.0/8", single addresses, or "unix" for whoever connects through a Unix socket.
// It finds the same keys as httplimit.ClientIP, for the same options.
//
// Nothing else is trusted. Who is not trusted is the client, whatever metadata it sends.
// Of a proxy that is, such as Envoy or a grpc-gateway, the metadata is read from the
// right, over further proxies that are trusted, to the first address that is not: what a
// client wrote itself is further left. An entry that is no address, the 33rd entry, or
// the end stops the walk; the key is then the last proxy that was trusted.
func ClientIP(trusted []string, opts *IPOptions) Key {
	var o IPOptions
	if opts != nil {
		o = *opts
	}
	c, err := newClientIP(o)
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
	field    string // in small letters
	v4, v6   int    // bits that count
	networks []netip.Prefix
	unix     bool
}

func newClientIP(o IPOptions) (*clientIP, error) {
	c := &clientIP{
		field: strings.ToLower(orDefault(o.Header, "x-forwarded-for")),
		v4:    orDefault(o.IPv4Bits, 32),
		v6:    orDefault(o.IPv6Bits, 64),
	}
	switch {
	case c.v4 < 1 || c.v4 > 32:
		return nil, invalid("IPOptions.IPv4Bits", o.IPv4Bits, "1 to 32")
	case c.v6 < 1 || c.v6 > 128:
		return nil, invalid("IPOptions.IPv6Bits", o.IPv6Bits, "1 to 128")
	case !isName(c.field) || strings.HasSuffix(c.field, "-bin") || c.field == "forwarded":
		return nil, invalid("IPOptions.Header", fmt.Sprintf("%.64q", c.field), "metadata that is a plain list of addresses: letters, digits and _-.")
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
	if network.Addr().Is4In6() { // peers' addresses are unmapped before they are looked up
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

var errNoAddress = fmt.Errorf("%w: nobody that is trusted names an IP address", ErrNoKey)

// key is the key of a call's client.
func (c *clientIP) key(ctx context.Context, _ Call) (string, error) {
	p, ok := peer.FromContext(ctx)
	if !ok || p.Addr == nil {
		return "", errNoAddress
	}
	addr, ok := addrOf(p.Addr)
	switch {
	case ok && !c.trusts(addr):
	case ok || c.unix && isSocket(p.Addr):
		addr, ok = c.client(addr, ok, metadata.ValueFromIncomingContext(ctx, c.field))
	}
	if !ok {
		return "", errNoAddress
	}
	return c.keyOf(addr), nil
}

// keyOf writes down what counts of an address.
func (c *clientIP) keyOf(addr netip.Addr) string {
	bits := c.v6
	switch {
	case addr.Is4():
		bits = c.v4
	case addr.IsLinkLocalUnicast(): // all links share one network
		bits = 128
	}
	if bits == addr.BitLen() {
		return addr.String()
	}
	network, _ := addr.Prefix(bits) // fails for zones, which are cut off
	var room [len("ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff/128")]byte
	return string(network.AppendTo(room[:0])) // String would allocate twice
}

// addrOf is the IP address of a peer, with no zone, and never IPv4 in IPv6.
func addrOf(a net.Addr) (addr netip.Addr, ok bool) {
	if tcp, isTCP := a.(*net.TCPAddr); isTCP {
		addr, ok = netip.AddrFromSlice(tcp.IP)
		return addr.Unmap(), ok
	}
	return parseHop(a.String()) // a server behind net/http has the address as text
}

// isSocket reports whether a peer came through a Unix socket.
func isSocket(a net.Addr) bool {
	if a.Network() == "unix" {
		return true
	}
	remote := a.String()
	return remote == "" || remote[0] == '@' || remote[0] == '/'
}
