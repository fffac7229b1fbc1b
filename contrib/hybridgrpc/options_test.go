package hybridgrpc

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"google.golang.org/grpc/codes"

	"github.com/hybridlimit/hybrid"
	"github.com/hybridlimit/hybrid/httplimit"
)

// nobody is a node that has no Redis, and needs none.
func nobody(t testing.TB) *hybrid.Node {
	t.Helper()
	rdb := redis.NewClient(&redis.Options{Addr: "127.0.0.1:1", DialerRetries: 1})
	node, err := hybrid.New(rdb, &hybrid.Options{Logger: silent})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = node.Close()
		_ = rdb.Close()
	})
	return node
}

// What cannot work is refused when the interceptor is made, by the name of the field.
func TestInvalidServerOptions(t *testing.T) {
	l := newLimiter(t, nobody(t), "api", hybrid.PerSecond(1), nil)
	odd := newLimiter(t, l.Node(), "\x00", hybrid.PerSecond(1), nil)
	foreign := newLimiter(t, nobody(t), "api", hybrid.PerSecond(1), nil)
	for _, c := range []struct {
		l    *hybrid.Limiter
		opts ServerOptions
		want string
	}{
		{nil, ServerOptions{}, "the limiter: nil"},
		{l, ServerOptions{Key: KeyFunc(nil)}, "KeyFunc: nil"},
		{l, ServerOptions{Key: Metadata("")}, "Metadata"},
		{l, ServerOptions{Key: Metadata("a key")}, "Metadata"},
		{l, ServerOptions{Key: Metadata(":authority")}, "Metadata"},
		{l, ServerOptions{Key: Metadata("grpc-timeout")}, "Metadata"},
		{l, ServerOptions{Key: Fixed("")}, "Fixed"},
		{l, ServerOptions{Key: Fixed(strings.Repeat("k", longestKey+1))}, "allowed 1 to 2048 bytes"},
		{l, ServerOptions{Key: Value(nil)}, "Value"},
		{l, ServerOptions{Key: Value([]int{})}, "Value"},
		{l, ServerOptions{Key: Target()}, "Target"},
		{l, ServerOptions{Key: Join(Method(), Target())}, "Target"},
		{l, ServerOptions{Key: Join()}, "Join"},
		{l, ServerOptions{Key: Join(Method(), Key{})}, "part 1"},
		{l, ServerOptions{Key: Join(Method(), Fixed(""))}, "Fixed"},
		{l, ServerOptions{Key: PeerIP(&IPOptions{IPv4Bits: 33})}, "IPv4Bits: 33"},
		{l, ServerOptions{Key: PeerIP(&IPOptions{IPv6Bits: -1})}, "IPv6Bits: -1"},
		{l, ServerOptions{Key: ClientIP(nil, &IPOptions{Header: "Forwarded"})}, "IPOptions.Header"},
		{l, ServerOptions{Key: ClientIP(nil, &IPOptions{Header: "ip-bin"})}, "IPOptions.Header"},
		{l, ServerOptions{Key: ClientIP([]string{"10.0.0.0/33"}, nil)}, "ClientIP"},
		{l, ServerOptions{Key: ClientIP([]string{"localhost"}, nil)}, "ClientIP"},
		{l, ServerOptions{Key: ClientIP([]string{"fe80::1%eth0"}, nil)}, "ClientIP"},
		{l, ServerOptions{Key: ClientIP([]string{"0.0.0.0/0"}, nil)}, "all addresses"},
		{l, ServerOptions{Key: ClientIP([]string{"::ffff:0.0.0.0/90"}, nil)}, "IPv4 networks"},
		{l, ServerOptions{Methods: []string{"/a/b", "a.B/C"}}, "Methods[1]"},
		{l, ServerOptions{Methods: []string{""}}, "Methods[0]"},
		{l, ServerOptions{Methods: []string{"/a.B"}}, "Methods[0]"},
		{l, ServerOptions{Methods: []string{"/a.B/"}}, "Methods[0]"},
		{l, ServerOptions{Methods: []string{"//C"}}, "Methods[0]"},
		{l, ServerOptions{Methods: []string{"/a/b/c"}}, "Methods[0]"},
		{l, ServerOptions{More: []Check{{}}}, "More[0]: the limiter: nil"},
		{l, ServerOptions{More: []Check{{Limiter: l}, {Limiter: l, Key: Fixed("")}}}, "Fixed"},
		{l, ServerOptions{More: []Check{{Limiter: foreign}}}, "More[0].Limiter"},
		{l, ServerOptions{Headers: 9}, "Headers(9)"},
		{odd, ServerOptions{Headers: httplimit.IETF}, "ServerOptions.Name"},
		{l, ServerOptions{Headers: httplimit.IETF, More: []Check{{Limiter: l, Name: "ä"}}}, "More[0].Name"},
		{l, ServerOptions{Messages: 3}, "Messages(3)"},
		{l, ServerOptions{Messages: WaitMessages, More: []Check{{Limiter: l}}}, "WaitMessages"},
		{l, ServerOptions{LongestPushback: time.Microsecond}, "LongestPushback: 1µs"},
		{l, ServerOptions{LongestPushback: -1}, "LongestPushback"},
		{l, ServerOptions{LongestPushback: 1000 * time.Hour}, "LongestPushback: 1000h0m0s, allowed 1ms to 576h"},
		{l, ServerOptions{NoKey: 17}, "NoKey: 17"},
	} {
		_, err := UnaryServer(c.l, &c.opts)
		_, err2 := StreamServer(c.l, &c.opts)
		if !errors.Is(err, hybrid.ErrInvalidOption) || !strings.Contains(err.Error(), c.want) || err2 == nil || err2.Error() != err.Error() {
			t.Errorf("%v, %v, want one that names %s", err, err2, c.want)
		}
	}
}

func TestInvalidClientOptions(t *testing.T) {
	l := newLimiter(t, nobody(t), "api", hybrid.PerSecond(1), nil)
	for _, c := range []struct {
		l    *hybrid.Limiter
		opts ClientOptions
		want string
	}{
		{nil, ClientOptions{}, "the limiter: nil"},
		{l, ClientOptions{Key: Fixed("")}, "Fixed"},
		{l, ClientOptions{Methods: []string{"Say"}}, "ClientOptions.Methods[0]"},
		{l, ClientOptions{NoKey: 17}, "ClientOptions.NoKey: 17"},
	} {
		_, err := UnaryClient(c.l, &c.opts)
		_, err2 := StreamClient(c.l, &c.opts)
		if !errors.Is(err, hybrid.ErrInvalidOption) || !strings.Contains(err.Error(), c.want) || err2 == nil || err2.Error() != err.Error() {
			t.Errorf("%v, %v, want one that names %s", err, err2, c.want)
		}
	}
}

// Nil options are all defaults, and what is given is copied.
func TestDefaults(t *testing.T) {
	l := newLimiter(t, nobody(t), "api", hybrid.PerSecond(1), nil)
	s, err := newServer(l, nil)
	if err != nil || s.noKey != codes.InvalidArgument || s.pushback != time.Minute || len(s.limits) != 1 || s.limits[0].name != "api" {
		t.Errorf("%+v, %v", s, err)
	}
	c, err := newClient(l, nil)
	if err != nil || c.options.NoKey != codes.InvalidArgument || !c.options.Key.clients {
		t.Errorf("%+v, %v", c, err)
	}
	opts := ServerOptions{Name: "a", Methods: []string{"/a/B"}}
	if s, err = newServer(l, &opts); err != nil {
		t.Fatal(err)
	}
	opts.Name, opts.Methods[0] = "b", "/c/D"
	if s.limits[0].name != "a" || !s.methods.has("/a/B") || s.methods.has("/c/D") {
		t.Errorf("%+v", s)
	}
	for m, want := range map[Messages]string{FreeMessages: "FreeMessages", DenyMessages: "DenyMessages", WaitMessages: "WaitMessages", 9: "Messages(9)"} {
		if m.String() != want {
			t.Errorf("%s", m)
		}
	}
}

// Servers with an unknown-service handler see methods of any kind.
func TestMethodsOfAnyKind(t *testing.T) {
	m, err := newMethods("", []string{"/a.B/C", "/d.E/*"})
	if err != nil {
		t.Fatal(err)
	}
	for method, want := range map[string]bool{
		"/a.B/C": true, "/d.E/F": true, "/d.E/": true,
		"": false, "/": false, "a": false, "/a.B/": false, "/a.B/D": false, "/d.E": false, "/d.E/F/G": false, "d.E/F": false,
	} {
		if m.has(method) != want {
			t.Errorf("%q: %v", method, !want)
		}
	}
}
