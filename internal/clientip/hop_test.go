package clientip

import (
	"net/netip"
	"testing"
)

// FuzzParse reads any text: what it takes for an address is one that netip knows,
// without zone, never IPv4 in IPv6, and its text is how netip writes it.
func FuzzParse(f *testing.F) {
	for _, s := range []string{"1.2.3.4", "1.2.3.4:80", "[::1]:80", "::1", "[::1]", "::ffff:1.2.3.4", "[fe80::1%x]:1", "1.2.3.4:+1", "[1.2.3.4]:1", "1:2", "", "[", "::"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		h, ok := Parse(s)
		if !ok {
			return
		}
		if !h.addr.IsValid() || h.addr.Zone() != "" || h.addr.Is4In6() || len(s) > longestHop {
			t.Fatalf("%q is %v", s, h.addr)
		}
		if h.text != "" && h.text != h.addr.String() {
			t.Fatalf("%q is %v with the text %q", s, h.addr, h.text)
		}
		if again, err := netip.ParseAddr(h.addr.String()); err != nil || again != h.addr {
			t.Fatalf("%q is %v, and that is %v, %v", s, h.addr, again, err)
		}
	})
}
