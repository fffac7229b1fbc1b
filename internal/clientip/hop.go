package clientip

import (
	"net/netip"
	"strings"
)

// Hop is an address of the chain from a client to here.
type Hop struct {
	addr netip.Addr // no zone, and never IPv4 in IPv6
	text string     // what addr.String returns, where that is there already
}

// HopOf is the Hop of an address.
func HopOf(addr netip.Addr) Hop { return Hop{addr: addr.WithZone("").Unmap()} }

// longestHop is an IPv6 address with brackets, a port and a zone.
const longestHop = 64

// Parse reads an address as servers and proxies write them: alone, with a port, in
// brackets, in brackets with a port.
func Parse(s string) (Hop, bool) {
	if s == "" || len(s) > longestHop {
		return Hop{}, false
	}
	host, port, bracketed := s, "", s[0] == '['
	switch colon := strings.IndexByte(s, ':'); {
	case bracketed:
		end := strings.IndexByte(s, ']')
		if end < 0 {
			return Hop{}, false
		}
		host, port = s[1:end], s[end+1:]
	case colon >= 0 && colon == strings.LastIndexByte(s, ':'):
		host, port = s[:colon], s[colon:]
	}
	addr, err := netip.ParseAddr(host)
	if err != nil || !isPort(port) || bracketed && addr.Is4() {
		return Hop{}, false
	}
	if addr.Is4() {
		return Hop{addr: addr, text: host}, true // there is one way to write it
	}
	return HopOf(addr), true
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

// IsSocket reports whether a server has called the other end of a Unix socket so.
func IsSocket(remote string) bool { return remote == "" || remote[0] == '@' || remote[0] == '/' }

// cutLast cuts the last entry off a list. It looks at no more than an entry may be
// long, with some space around it: what is longer comes back uncut, and is no address.
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
