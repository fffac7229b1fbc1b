package hybridgrpc

import (
	"cmp"
	"context"
	"fmt"
	"net"
	"net/netip"
	"strings"

	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/peer"

	"github.com/hybridlimit/hybrid/httplimit"
	"github.com/hybridlimit/hybrid/internal/clientip"
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
	field := strings.ToLower(cmp.Or(o.Header, "x-forwarded-for"))
	if !isName(field) || strings.HasSuffix(field, "-bin") || field == "forwarded" {
		return Key{err: invalid("IPOptions.Header", fmt.Sprintf("%.64q", field), "metadata that is a plain list of addresses: letters, digits and _-.")}
	}
	proxies, err := clientip.New(o.IPv4Bits, o.IPv6Bits, trusted, invalid)
	if err != nil {
		return Key{err: err}
	}
	return Key{find: (&clientIP{field, proxies}).key}
}

// clientIP is a ClientIP, ready to look.
type clientIP struct {
	field   string // in small letters
	proxies *clientip.Proxies
}

var errNoAddress = fmt.Errorf("%w: nobody that is trusted names an IP address", ErrNoKey)

// key is the key of a call's client.
func (c *clientIP) key(ctx context.Context, _ Call) (string, error) {
	p, ok := peer.FromContext(ctx)
	if !ok || p.Addr == nil {
		return "", errNoAddress
	}
	at, ok := hopOf(p.Addr)
	if c.proxies.Trust(at, ok, !ok && isSocket(p.Addr)) {
		at, ok = c.proxies.Client(at, ok, metadata.ValueFromIncomingContext(ctx, c.field))
	}
	if !ok {
		return "", errNoAddress
	}
	return c.proxies.Key(at), nil
}

// hopOf is the IP address of a peer.
func hopOf(a net.Addr) (clientip.Hop, bool) {
	if tcp, isTCP := a.(*net.TCPAddr); isTCP {
		addr, ok := netip.AddrFromSlice(tcp.IP)
		return clientip.HopOf(addr), ok
	}
	return clientip.Parse(a.String()) // a server behind net/http has the address as text
}

// isSocket reports whether a peer came through a Unix socket.
func isSocket(a net.Addr) bool { return a.Network() == "unix" || clientip.IsSocket(a.String()) }
