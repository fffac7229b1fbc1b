package hybridgrpc

import (
	"context"
	"errors"
	"net"
	"strings"
	"testing"

	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/peer"
)

// from is the context of a call from an address, with metadata given as name and
// value in turn.
func from(remote net.Addr, pairs ...string) context.Context {
	c := metadata.NewIncomingContext(ctx, metadata.Pairs(pairs...))
	return peer.NewContext(c, &peer.Peer{Addr: remote})
}

func tcp(ip string) net.Addr { return &net.TCPAddr{IP: net.ParseIP(ip), Port: 1234} }

// text is an address that a server behind net/http has.
type text string

func (t text) Network() string { return "tcp" }
func (t text) String() string  { return string(t) }

type userKey struct{}

type stringer struct{ string }

func (s stringer) String() string { return s.string }

func TestKeys(t *testing.T) {
	proxies := []string{"10.0.0.0/8", "2001:db8:ffff::1", "unix"}
	user := func(v any) context.Context { return context.WithValue(from(tcp("192.0.2.1")), userKey{}, v) }
	for name, c := range map[string]struct {
		key  Key
		ctx  context.Context
		want string // "": none
	}{
		"metadata":            {Metadata("X-Api-Key"), from(nil, "x-api-key", "k"), "k"},
		"binary metadata":     {Metadata("token-bin"), from(nil, "token-bin", "\x00\xff"), "\x00\xff"},
		"metadata missing":    {Metadata("x-api-key"), from(nil, "x-api-key2", "k"), ""},
		"metadata empty":      {Metadata("x-api-key"), from(nil, "x-api-key", ""), ""},
		"metadata twice":      {Metadata("x-api-key"), from(nil, "x-api-key", "k", "x-api-key", "k"), ""},
		"no metadata at all":  {Metadata("x-api-key"), ctx, ""},
		"peer":                {PeerIP(nil), from(tcp("192.0.2.1"), "x-forwarded-for", "192.0.2.2"), "192.0.2.1"},
		"peer mapped":         {PeerIP(nil), from(tcp("::ffff:192.0.2.1")), "192.0.2.1"},
		"peer of a /24":       {PeerIP(&IPOptions{IPv4Bits: 24}), from(tcp("192.0.2.1")), "192.0.2.0/24"},
		"peer v6":             {PeerIP(nil), from(tcp("2001:db8:1:2:3:4:5:6")), "2001:db8:1:2::/64"},
		"peer v6, all":        {PeerIP(&IPOptions{IPv6Bits: 128}), from(tcp("2001:db8::1")), "2001:db8::1"},
		"peer v6, link-local": {PeerIP(nil), from(&net.TCPAddr{IP: net.ParseIP("fe80::1"), Zone: "eth0"}), "fe80::1"},
		"peer as text":        {PeerIP(nil), from(text("[2001:db8:1:2:3::1]:80")), "2001:db8:1:2::/64"},
		"peer, no address":    {PeerIP(nil), from(text("bufconn")), ""},
		"peer, no IP":         {PeerIP(nil), from(&net.TCPAddr{}), ""},
		"peer, a socket":      {PeerIP(nil), from(&net.UnixAddr{Name: "/run/s", Net: "unix"}), ""},
		"no peer":             {PeerIP(nil), ctx, ""},
		"peer without one":    {PeerIP(nil), from(nil), ""},
		"client":              {ClientIP(proxies, nil), from(tcp("10.1.1.1"), "x-forwarded-for", "192.0.2.1"), "192.0.2.1"},
		"client, forged":      {ClientIP(proxies, nil), from(tcp("10.1.1.1"), "x-forwarded-for", "1.1.1.1, 192.0.2.1"), "192.0.2.1"},
		"client, two lines":   {ClientIP(proxies, nil), from(tcp("10.1.1.1"), "x-forwarded-for", "1.1.1.1", "x-forwarded-for", "192.0.2.1, 10.2.2.2"), "192.0.2.1"},
		"client around":       {ClientIP(proxies, nil), from(tcp("192.0.2.9"), "x-forwarded-for", "1.1.1.1"), "192.0.2.9"},
		"client v6":           {ClientIP(proxies, nil), from(tcp("2001:db8:ffff::1"), "x-forwarded-for", "[2001:db8:1:2:3::4]:55"), "2001:db8:1:2::/64"},
		"client, nonsense":    {ClientIP(proxies, nil), from(tcp("10.1.1.1"), "x-forwarded-for", "1.1.1.1, unknown"), "10.1.1.1"},
		"client, none named":  {ClientIP(proxies, nil), from(tcp("10.1.1.1")), "10.1.1.1"},
		"client, long":        {ClientIP(proxies, nil), from(tcp("10.1.1.1"), "x-forwarded-for", strings.Repeat("1", 1<<20)), "10.1.1.1"},
		"client, many":        {ClientIP(proxies, nil), from(tcp("10.1.1.1"), "x-forwarded-for", "192.0.2.1"+strings.Repeat(",10.2.2.2", 99)), "10.2.2.2"},
		"client by socket":    {ClientIP(proxies, nil), from(&net.UnixAddr{Net: "unix"}, "x-forwarded-for", "192.0.2.1"), "192.0.2.1"},
		"socket, none named":  {ClientIP(proxies, nil), from(&net.UnixAddr{Net: "unix"}), ""},
		"socket not trusted":  {ClientIP(proxies[:1], nil), from(&net.UnixAddr{Net: "unix"}, "x-forwarded-for", "192.0.2.1"), ""},
		"client, own name":    {ClientIP(proxies, &IPOptions{Header: "X-Real-IP"}), from(tcp("10.1.1.1"), "x-real-ip", "192.0.2.1"), "192.0.2.1"},
		"method":              {Method(), from(nil), say},
		"target":              {Target(), from(nil), "dns:///there"},
		"value":               {Value(userKey{}), user("ann"), "ann"},
		"value, stringer":     {Value(userKey{}), user(stringer{"bob"}), "bob"},
		"value, none":         {Value(userKey{}), ctx, ""},
		"value, empty":        {Value(userKey{}), user(""), ""},
		"value, of no text":   {Value(userKey{}), user(7), ""},
		"fixed":               {Fixed("all"), ctx, "all"},
		"join":                {Join(Value(userKey{}), PeerIP(nil), Method()), user("ann"), "3:ann9:192.0.2.1" + say},
		"join, part missing":  {Join(Method(), Metadata("x-api-key")), from(nil), ""},
		"join of one":         {Join(Fixed("a:b")), ctx, "a:b"},
	} {
		if c.key.err != nil {
			t.Errorf("%s: %v", name, c.key.err)
			continue
		}
		got, err := c.key.of(c.ctx, Call{Method: say, Target: "dns:///there"})
		if got != c.want || (err == nil) != (c.want != "") || err != nil && !errors.Is(err, ErrNoKey) {
			t.Errorf("%s: %q, %v, want %q", name, got, err, c.want)
		}
	}
}

// What is too long is no key, wherever it comes from and whatever it is a part of.
func TestLongKeysAreNone(t *testing.T) {
	long, longest := strings.Repeat("k", longestKey+1), strings.Repeat("k", longestKey)
	c := context.WithValue(from(nil, "long", long, "long-bin", long, "longest", longest), userKey{}, stringer{long})
	c = context.WithValue(c, "text", long) //nolint:staticcheck // any key will do
	call := Call{Method: long, Target: long}
	for name, key := range map[string]Key{
		"metadata": Metadata("long"), "binary metadata": Metadata("long-bin"), "a stringer": Value(userKey{}), "a string": Value("text"),
		"a method": Method(), "a target": Target(), "a join": Join(Fixed("a"), Metadata("longest")), "a part": Join(Metadata("long"), Fixed("a")),
		"a function": KeyFunc(func(context.Context, Call) (string, error) { return long, nil }),
	} {
		if got, err := key.of(c, call); got != "" || !errors.Is(err, ErrNoKey) || len(err.Error()) > 200 {
			t.Errorf("%s: a key of %d bytes, %v", name, len(got), err)
		}
	}
	if got, err := Metadata("longest").of(c, call); got != longest || err != nil {
		t.Errorf("the longest key: %d bytes, %v", len(got), err)
	}
}

// Two lists of parts never give one key.
func TestJoinsDiffer(t *testing.T) {
	seen := map[string][]string{}
	for _, parts := range [][]string{{"a", "b:c"}, {"a:b", "c"}, {"1:a", "b"}, {"1", "a1:b"}, {"a", "1:b", "c"}, {"a", "1:b1:c"}, {"a1", "b", "c"}} {
		var keys []Key
		for _, p := range parts {
			keys = append(keys, Fixed(p))
		}
		key, err := Join(keys...).of(ctx, Call{})
		if err != nil {
			t.Fatal(err)
		}
		if other, ok := seen[key]; ok {
			t.Errorf("%q and %q are both %q", parts, other, key)
		}
		seen[key] = parts
	}
}
