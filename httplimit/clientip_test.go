package httplimit

import (
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"
)

func TestHowMuchOfAnAddressCounts(t *testing.T) {
	for _, c := range []struct {
		opts         IPOptions
		remote, want string
	}{
		{IPOptions{IPv4Bits: 24}, "203.0.113.9:1", "203.0.113.0/24"},
		{IPOptions{IPv4Bits: 24}, "[::ffff:203.0.113.9]:1", "203.0.113.0/24"},
		{IPOptions{IPv6Bits: 48}, "[2001:db8:1:2::3]:1", "2001:db8:1::/48"},
		{IPOptions{IPv6Bits: 128}, "[2001:db8:0:0::3]:1", "2001:db8::3"},
		{IPOptions{IPv6Bits: 48}, "203.0.113.9:1", "203.0.113.9"},
	} {
		if got, err := keyBy(RemoteIP(&c.opts).find, native{&http.Request{RemoteAddr: c.remote}}); got != c.want || err != nil {
			t.Errorf("%+v of %s: %q, %v; want %q", c.opts, c.remote, got, err, c.want)
		}
	}
}

func TestAnotherHeader(t *testing.T) {
	key := ClientIP([]string{"10.0.0.1"}, &IPOptions{Header: "cf-connecting-ip"})
	r := &http.Request{RemoteAddr: "10.0.0.1:1", Header: http.Header{"Cf-Connecting-Ip": {"203.0.113.9"}, "X-Forwarded-For": {"1.1.1.1"}}}
	if got, err := keyBy(key.find, native{r}); got != "203.0.113.9" || err != nil {
		t.Errorf("%q, %v", got, err)
	}
}

// Somebody within may send a chain that never ends: it is looked at for 32
// entries, and entries for some bytes.
func TestLongChainsAreBounded(t *testing.T) {
	key := ClientIP([]string{"10.0.0.0/8"}, nil)
	of := func(lines ...string) string {
		t.Helper()
		got, err := keyBy(key.find, native{&http.Request{RemoteAddr: "10.0.0.1:1", Header: http.Header{"X-Forwarded-For": lines}}})
		if err != nil {
			t.Error(err)
		}
		return got
	}
	hops := "10.1.1.1" + strings.Repeat(", 10.0.0.2", 31)
	if got := of("203.0.113.9, " + hops[len("10.1.1.1, "):]); got != "203.0.113.9" {
		t.Errorf("a client as the 32nd entry: %s", got)
	}
	if got := of("203.0.113.9, " + hops); got != "10.1.1.1" {
		t.Errorf("a client as the 33rd entry: %s, want the 32nd", got)
	}
	if got := of(slices.Repeat([]string{"10.0.0.3"}, 100_000)...); got != "10.0.0.3" {
		t.Errorf("many lines: %s", got)
	}
	for _, junk := range []string{"x", " ", "1", ":", "[", "%", "\x00", "\xff", ","} {
		if got := of("203.0.113.9, " + strings.Repeat(junk, 1<<20)); got != "10.0.0.1" {
			t.Errorf("a megabyte of %q: %s, want the proxy", junk, got)
		}
	}
	if got := of("203.0.113.9," + strings.Repeat(" ", 50) + "10.0.0.4"); got != "203.0.113.9" {
		t.Errorf("some space: %s", got)
	}
	took := func(chain string) time.Duration {
		start := time.Now()
		for range 1000 {
			of(chain)
		}
		return time.Since(start)
	}
	for _, part := range []string{"10.0.0.2, ", " "} {
		short, long := took(strings.Repeat(part, 400)+"10.0.0.2"), took(strings.Repeat(part, 1<<20)+"10.0.0.2")
		if long > 20*short+100*time.Millisecond { // gigabytes, if all of it were read
			t.Errorf("1000 walks over a megabyte of %q took %v, over some hundred bytes %v", part, long, short)
		}
	}
}

// FuzzClientIP walks chains of any bytes. What a client wrote left of its own
// address changes nothing, and a key is the peer or an address of the chain.
func FuzzClientIP(f *testing.F) {
	for _, chain := range []string{"", "1.2.3.4", "1.2.3.4, 10.0.0.1", " 10.0.0.1 ,\t10.0.0.2", "unknown", ",", ",,,", "[::1]:80", "[::1", "::1%", "::1%0",
		"::ffff:1.2.3.4", "[::ffff:1.2.3.4%x]:1", "1.2.3.4:", "1.2.3.4:99999", ":80", "]", "[]:1", "010.0.0.1", "10.0.0.1\x00", "\xff", "fe80::1%eth0", "256.1.1.1",
		strings.Repeat("10.0.0.1,", 40), strings.Repeat("9", 200), "64:ff9b::1.2.3.4", "1.2.3.4,\r\n", "for=1.2.3.4"} {
		f.Add(chain, "10.0.0.1:80", uint8(64))
		f.Add(chain, chain, uint8(128))
	}
	f.Fuzz(func(t *testing.T, chain, remote string, bits uint8) {
		key := ClientIP([]string{"10.0.0.0/8", "fd00::/8"}, &IPOptions{IPv6Bits: 1 + int(bits)%128})
		request := func(remote string, lines ...string) Request {
			return native{&http.Request{RemoteAddr: remote, Header: http.Header{"X-Forwarded-For": lines}}}
		}
		got, err := keyBy(key.find, request(remote, chain))
		alone, errAlone := keyBy(key.find, request(remote))
		if (err == nil) != (errAlone == nil) {
			t.Fatalf("%q behind %q: %v, and without the chain %v", chain, remote, err, errAlone)
		}
		if err == nil && got != alone && !among(t, key, chain, got) {
			t.Fatalf("%q behind %q has the key %q, which nobody named", chain, remote, got)
		}
		want, _ := keyBy(key.find, request("203.0.113.9:1"))
		for _, lines := range [][]string{{chain + ",203.0.113.9"}, {chain, "203.0.113.9, 10.0.0.2"}} {
			if got, err := keyBy(key.find, request("10.0.0.1:80", lines...)); got != want || err != nil {
				t.Fatalf("%q: key %q, %v; want that of the client, %q", lines, got, err, want)
			}
		}
		if got, err := keyBy(key.find, request("203.0.113.9:1", chain)); got != want || err != nil {
			t.Fatalf("%q of a client without a proxy: %q, %v", chain, got, err)
		}
	})
}

// among reports whether a key is that of an entry of a chain.
func among(t *testing.T, key Key, chain, got string) bool {
	t.Helper()
	for entry := range strings.SplitSeq(chain, ",") {
		own, err := keyBy(key.find, native{&http.Request{RemoteAddr: strings.Trim(entry, " \t")}})
		if err == nil && own == got {
			return true
		}
	}
	return false
}
