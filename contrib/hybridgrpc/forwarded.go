package hybridgrpc

import (
	"net/netip"
	"strings"
)

// Bounds of what is looked at in metadata that anybody may have written.
const (
	mostHops   = 32
	longestHop = 64 // an IPv6 address with brackets, a port and a zone
)

// client walks from a trusted peer to the client, from the right of what the proxies
// wrote down to the first who is not trusted. Without ok the peer has no address, and
// nobody named one.
func (c *clientIP) client(addr netip.Addr, ok bool, lines []string) (netip.Addr, bool) {
	for hops := 0; len(lines) > 0; {
		line := lines[len(lines)-1]
		for more := true; more; hops++ {
			var entry string
			entry, line, more = cutLast(line)
			next, valid := parseHop(entry)
			if !valid || hops == mostHops {
				return addr, ok
			}
			addr, ok = next, true
			if !c.trusts(addr) {
				return addr, true
			}
		}
		lines = lines[:len(lines)-1]
	}
	return addr, ok
}

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

// parseHop reads an address as servers and proxies write them: alone, with a port, in
// brackets, in brackets with a port. It has no zone then, and is never IPv4 in IPv6.
func parseHop(s string) (netip.Addr, bool) {
	if s == "" || len(s) > longestHop {
		return netip.Addr{}, false
	}
	host, port, bracketed := s, "", s[0] == '['
	switch colon := strings.IndexByte(s, ':'); {
	case bracketed:
		end := strings.IndexByte(s, ']')
		if end < 0 {
			return netip.Addr{}, false
		}
		host, port = s[1:end], s[end+1:]
	case colon >= 0 && colon == strings.LastIndexByte(s, ':'):
		host, port = s[:colon], s[colon:]
	}
	addr, err := netip.ParseAddr(host)
	if err != nil || !isPort(port) || bracketed && addr.Is4() {
		return netip.Addr{}, false
	}
	return addr.WithZone("").Unmap(), true
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
