package clientip

import (
	"fmt"
	"net/netip"
	"strings"
	"testing"
)

// What the packages around this one say of a mistake is their own; it names the field,
// the value as it was given, and what is allowed.
func TestMistakesAreRefused(t *testing.T) {
	invalid := func(field string, value any, allowed string) error {
		return fmt.Errorf("%s: %v, allowed %s", field, value, allowed)
	}
	for want, c := range map[string]struct {
		v4, v6  int
		trusted []string
	}{
		"IPOptions.IPv4Bits: 33, allowed 1 to 32":                                                             {33, 0, nil},
		"IPOptions.IPv4Bits: -1, allowed 1 to 32":                                                             {-1, 0, nil},
		"IPOptions.IPv6Bits: 129, allowed 1 to 128":                                                           {0, 129, nil},
		"IPOptions.IPv6Bits: -1, allowed 1 to 128":                                                            {0, -1, nil},
		`ClientIP: "proxy", allowed CIDRs such as "10.0.0.0/8", addresses, and "unix"`:                        {0, 0, []string{"unix", "proxy"}},
		`ClientIP: "::/0", allowed networks that are not all addresses: each client would choose its own key`: {0, 0, []string{"::/0"}},
		`ClientIP: "::ffff:0:0/96", allowed IPv4 networks in their own notation`:                              {0, 0, []string{"::ffff:0:0/96"}},
	} {
		if p, err := New(c.v4, c.v6, c.trusted, invalid); p != nil || fmt.Sprint(err) != want {
			t.Errorf("%v, want %s", err, want)
		}
	}
}

// A chain is walked from the right, over whoever is trusted, and no further.
func TestClient(t *testing.T) {
	p, err := New(0, 0, []string{"10.0.0.0/8", "unix"}, nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		remote string
		lines  []string
		want   string
	}{
		{"192.0.2.1:80", []string{"1.1.1.1"}, "192.0.2.1"}, // not trusted, whatever it says
		{"10.0.0.1:80", nil, "10.0.0.1"},
		{"10.0.0.1:80", []string{"1.1.1.1, 192.0.2.1"}, "192.0.2.1"},
		{"10.0.0.1:80", []string{"1.1.1.1", "192.0.2.1, 10.0.0.2"}, "192.0.2.1"},
		{"10.0.0.1:80", []string{"192.0.2.1, unknown, 10.0.0.2"}, "10.0.0.2"},
		{"10.0.0.1:80", []string{"192.0.2.1" + strings.Repeat(", 10.0.0.2", mostHops)}, "10.0.0.2"},
		{"10.0.0.1:80", []string{"192.0.2.1" + strings.Repeat(", 10.0.0.2", mostHops-1)}, "192.0.2.1"},
		{"10.0.0.1:80", []string{"192.0.2.1" + strings.Repeat(" ", 2*longestHop)}, "10.0.0.1"},
		{"@", []string{"2001:db8:1:2:3::4"}, "2001:db8:1:2::/64"},
		{"@", nil, ""},
		{"pipe", []string{"192.0.2.1"}, ""},
	} {
		at, ok := Parse(c.remote)
		if p.Trust(at, ok, IsSocket(c.remote)) {
			at, ok = p.Client(at, ok, c.lines)
		}
		if ok != (c.want != "") || ok && p.Key(at) != c.want {
			t.Errorf("%s, behind it %.60q: %v %v, want %q", c.remote, c.lines, at, ok, c.want)
		}
	}
}

// FuzzTrust trusts any text: it is refused, or trusts addresses that it names and
// no other kind of address.
func FuzzTrust(f *testing.F) {
	for _, s := range []string{"10.0.0.0/8", "10.1.2.3/8", "::1", "::ffff:1.2.3.4/128", "::ffff:0:0/96", "unix", "0.0.0.0/0", "1.2.3.4/", "/8", "fe80::1%x/64", "::/1"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		c := &Proxies{}
		if allowed := c.trust(s); allowed != "" {
			if len(c.networks) > 0 || c.unix {
				t.Fatalf("%q: allowed %s, %+v", s, allowed, c)
			}
			return
		}
		if c.unix != (s == "unix") || c.unix == (len(c.networks) > 0) {
			t.Fatalf("%q: %+v", s, c)
		}
		for _, n := range c.networks {
			first, err := netip.ParseAddr(strings.SplitN(s, "/", 2)[0])
			if err != nil || n.Bits() < 1 || n.Addr().Is4In6() || !c.trusts(first.Unmap()) {
				t.Fatalf("%q trusts %v", s, n)
			}
		}
	})
}
