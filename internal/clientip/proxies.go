// Package clientip finds the client of a request behind proxies that are trusted, for
// httplimit and contrib/hybridgrpc: the same client must have the same key in both.
package clientip

import (
	"fmt"
	"net/netip"
)

// Proxies are who is trusted to say who asked them, and how much of an address counts.
// Nothing in it changes after New.
type Proxies struct {
	v4, v6   int // bits that count
	networks []netip.Prefix
	unix     bool
}

// Invalid makes the error of a field that holds a value, and of what is allowed there.
type Invalid func(field string, value any, allowed string) error

// New makes Proxies that trust CIDRs, addresses and "unix". Of an address so many bits
// count: 1 to 32 and 1 to 128; 0 means 32 and 64. It fails with what invalid makes.
func New(v4Bits, v6Bits int, trusted []string, invalid Invalid) (*Proxies, error) {
	p := &Proxies{v4: v4Bits, v6: v6Bits}
	if p.v4 == 0 {
		p.v4 = 32
	}
	if p.v6 == 0 {
		p.v6 = 64
	}
	switch {
	case p.v4 < 1 || p.v4 > 32:
		return nil, invalid("IPOptions.IPv4Bits", v4Bits, "1 to 32")
	case p.v6 < 1 || p.v6 > 128:
		return nil, invalid("IPOptions.IPv6Bits", v6Bits, "1 to 128")
	}
	for _, text := range trusted {
		if allowed := p.trust(text); allowed != "" {
			return nil, invalid("ClientIP", fmt.Sprintf("%.64q", text), allowed)
		}
	}
	return p, nil
}

// trust adds a network, an address or "unix", or says what is allowed instead.
func (p *Proxies) trust(text string) (allowed string) {
	if text == "unix" {
		p.unix = true
		return ""
	}
	network, err := netip.ParsePrefix(text)
	if err != nil {
		addr, err := netip.ParseAddr(text)
		if err != nil || addr.Zone() != "" {
			return `CIDRs such as "10.0.0.0/8", addresses, and "unix"`
		}
		network = netip.PrefixFrom(addr, addr.BitLen())
	}
	if network.Bits() == 0 {
		return "networks that are not all addresses: each client would choose its own key"
	}
	if network.Addr().Is4In6() { // peers' addresses are unmapped before they are looked up
		if network.Bits() <= 96 {
			return "IPv4 networks in their own notation"
		}
		network = netip.PrefixFrom(network.Addr().Unmap(), network.Bits()-96)
	}
	p.networks = append(p.networks, network.Masked())
	return ""
}

// Trust reports whether what a peer says of its client is believed. A peer without
// an address may be a Unix socket.
func (p *Proxies) Trust(at Hop, hasAddress, socket bool) bool {
	if hasAddress {
		return p.trusts(at.addr)
	}
	return p.unix && socket
}

func (p *Proxies) trusts(addr netip.Addr) bool {
	for _, network := range p.networks {
		if network.Contains(addr) {
			return true
		}
	}
	return false
}

// mostHops bounds the walk over a header that anybody may have written.
const mostHops = 32

// Client walks from a trusted peer to the client: from the right of what the proxies
// wrote down, to the first who is not trusted. An entry that is no address, or one too
// many, ends the walk at the last proxy. Without ok the peer has no address, and nobody
// named one.
func (p *Proxies) Client(at Hop, ok bool, lines []string) (Hop, bool) {
	for hops := 0; len(lines) > 0; {
		line := lines[len(lines)-1]
		for more := true; more; hops++ {
			var entry string
			entry, line, more = cutLast(line)
			next, valid := Parse(entry)
			if !valid || hops == mostHops {
				return at, ok
			}
			at, ok = next, true
			if !p.trusts(at.addr) {
				return at, true
			}
		}
		lines = lines[:len(lines)-1]
	}
	return at, ok
}

// Key writes down what counts of an address: itself, or its network. Link-local
// addresses count in full, since all links share one network.
func (p *Proxies) Key(at Hop) string {
	bits := p.v6
	switch {
	case at.addr.Is4():
		bits = p.v4
	case at.addr.IsLinkLocalUnicast():
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
