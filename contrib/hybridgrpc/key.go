package hybridgrpc

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"strconv"
	"strings"

	"google.golang.org/grpc/metadata"
)

// Call is what is known of a call when it is decided.
type Call struct {
	Method string // full, as in "/grpc.health.v1.Health/Check"

	// Request is the message: of a unary call, or the one of a stream that is charged.
	// It is nil when a stream opens.
	Request any

	Target string // on a client, what its connection was made for; on a server ""
}

// Key finds the key of a call: what it is counted under. Make one with KeyFunc,
// Metadata, PeerIP, ClientIP, Method, Target, Value, Fixed or Join. What is wrong with
// it is returned by the constructor of the interceptor. The zero Key is the default of
// where it is used.
//
// A Key that fails, or finds an empty string or one of over 2 KiB, gives the call no key:
// it is refused (see ServerOptions.NoKey) and never counted with others.
type Key struct {
	find    func(context.Context, Call) (string, error)
	clients bool  // it can find nothing on a server
	err     error // what is wrong with it
}

// longestKey is the longest key of a call, in bytes, as in package httplimit: what a
// client sends may be remembered for a while, by a limiter with LimitFor as it is.
const longestKey = 2 << 10

var errTooLong = fmt.Errorf("%w: what it has is longer than %d bytes", ErrNoKey, longestKey)

func (k Key) isZero() bool { return k.find == nil && k.err == nil }

// of returns the key of a call, or an ErrNoKey.
func (k Key) of(ctx context.Context, call Call) (string, error) {
	key, err := k.find(ctx, call)
	switch {
	case err == nil && len(key) > longestKey:
		return "", errTooLong
	case err == nil && key != "":
		return key, nil
	case err == nil:
		return "", ErrNoKey
	case errors.Is(err, ErrNoKey):
		return "", err
	default:
		return "", fmt.Errorf("%w: %w", ErrNoKey, err)
	}
}

// KeyFunc makes a Key of a function. It is called for each call, from any goroutine,
// and for a stream when it opens: without a Request.
func KeyFunc(find func(context.Context, Call) (string, error)) Key {
	if find == nil {
		return Key{err: invalid("KeyFunc", "nil", "a function")}
	}
	return Key{find: find}
}

// Metadata is the value of a piece of metadata that the client sends, such as an API
// key. A call with none, or with more than one, has no key: which of two would be
// checked by whoever checks API keys is not ours to guess. Check API keys before you
// limit by them, or limit by address first: whoever may invent keys has as many budgets.
// A token that its client renews is a new budget each time: count by Value instead.
//
// The value of a name that ends in "-bin" is bytes, of any kind.
//
// On a client it reads the incoming call's metadata, if the context comes from one.
func Metadata(name string) Key {
	name = strings.ToLower(name)
	if !isName(name) {
		return Key{err: invalid("Metadata", fmt.Sprintf("%.64q", name), "a name of letters, digits and _-. that does not begin with grpc-")}
	}
	missing := fmt.Errorf("%w: metadata %s is missing", ErrNoKey, name)
	repeated := fmt.Errorf("%w: metadata %s is there more than once", ErrNoKey, name)
	return Key{find: func(ctx context.Context, _ Call) (string, error) {
		switch values := metadata.ValueFromIncomingContext(ctx, name); {
		case len(values) == 0 || values[0] == "" && len(values) == 1:
			return "", missing
		case len(values) > 1:
			return "", repeated
		default:
			return values[0], nil
		}
	}}
}

// Method is the call's full method, as in "/grpc.health.v1.Health/Check": all calls of
// a method share a budget. A server with an unknown-service handler takes any method
// that a client makes up; limit there by something else.
func Method() Key {
	return Key{find: func(_ context.Context, call Call) (string, error) { return call.Method, nil }}
}

// Target is what a client's connection was made for, as in "dns:///billing:443": all
// calls of one downstream share a budget. It is for clients only.
func Target() Key {
	return Key{clients: true, find: func(_ context.Context, call Call) (string, error) { return call.Target, nil }}
}

// Value is a value of the call's context, a string or a fmt.Stringer: the user, as an
// authenticating interceptor before this one has left it there.
func Value(contextKey any) Key {
	if contextKey == nil || !reflect.TypeOf(contextKey).Comparable() {
		return Key{err: invalid("Value", fmt.Sprintf("a key of type %T", contextKey), "a key that can be compared, as context.WithValue wants it")}
	}
	missing := fmt.Errorf("%w: nothing in the context under a key of type %T", ErrNoKey, contextKey)
	return Key{find: func(ctx context.Context, _ Call) (string, error) {
		switch v := ctx.Value(contextKey).(type) {
		case nil:
			return "", missing
		case string:
			return v, nil
		case fmt.Stringer:
			return v.String(), nil
		default:
			return "", fmt.Errorf("%w: a %T in the context, which is no string and has no String method", ErrNoKey, v)
		}
	}}
}

// Fixed is one key for all calls: one budget for all callers together, or a part of a
// Join.
func Fixed(key string) Key {
	if key == "" || len(key) > longestKey {
		return Key{err: invalid("Fixed", fmt.Sprintf("%.64q", key), fmt.Sprintf("1 to %d bytes", longestKey))}
	}
	return Key{find: func(context.Context, Call) (string, error) { return key, nil }}
}

// Join is several keys as one: a budget for each user and method. It has no key where
// one of them has none, or all together are too long. No two lists of parts give the
// same key: each part but the last comes with its length, so ("a", "b:c") is "1:ab:c",
// and ("a:b", "c") is "3:a:bc". It is written as httplimit.Join writes it: the same
// parts have the same budget over HTTP and gRPC.
func Join(keys ...Key) Key {
	if len(keys) == 0 {
		return Key{err: invalid("Join", "no keys", "at least one")}
	}
	keys = append([]Key(nil), keys...)
	joined := Key{find: func(ctx context.Context, call Call) (string, error) { return join(ctx, call, keys) }}
	for i, k := range keys {
		switch {
		case k.err != nil:
			return k
		case k.isZero():
			return Key{err: invalid("Join", fmt.Sprintf("a zero Key as part %d", i), "keys made by the functions of this package")}
		}
		joined.clients = joined.clients || k.clients
	}
	return joined
}

func join(ctx context.Context, call Call, keys []Key) (string, error) {
	var room [128]byte
	b := room[:0]
	for i, k := range keys {
		part, err := k.of(ctx, call)
		if err != nil {
			return "", err
		}
		if i < len(keys)-1 {
			b = strconv.AppendInt(b, int64(len(part)), 10)
			b = append(b, ':')
		}
		b = append(b, part...)
	}
	return string(b), nil
}

// isName reports whether s names metadata that an application may use, in small
// letters.
func isName(s string) bool {
	for i := range len(s) {
		c := s[i]
		letter, digit := 'a' <= c && c <= 'z', '0' <= c && c <= '9'
		if !letter && !digit && c != '-' && c != '_' && c != '.' {
			return false
		}
	}
	return s != "" && !strings.HasPrefix(s, "grpc-")
}
