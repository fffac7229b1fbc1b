package httplimit

import (
	"errors"
	"fmt"
	"net/http"
	"reflect"
	"strconv"
	"strings"
)

// Key finds the key of a request: what it is counted under. Make one with
// KeyFunc, Header, RemoteIP, ClientIP, Pattern, Value, Fixed or Join, or with
// RequestKey for other servers than net/http's. What is wrong with it is returned by
// New. The zero Key is the default of where it is used.
//
// A Key that fails, or finds an empty string or one of over 2 KiB, gives the request no
// key: it is refused (see Options.NoKey) and never counted with others.
type Key struct {
	find   func(Request) (string, error)
	native bool  // it needs a request of net/http
	err    error // what is wrong with it
}

// longestKey is the longest key of a request, in bytes: what a client sends may be
// remembered for a while, by a limiter with LimitFor as it is. API keys have some dozens
// of bytes. JWTs that are API keys have 200 to 1600: by the claims, and 683 for a
// signature of RSA-4096 alone.
const longestKey = 2 << 10

var errTooLong = fmt.Errorf("%w: what it has is longer than %d bytes", ErrNoKey, longestKey)

func (k Key) isZero() bool { return k.find == nil && k.err == nil }

// keyBy returns the key of a request, or an ErrNoKey.
func keyBy(find func(Request) (string, error), r Request) (string, error) {
	key, err := find(r)
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

// KeyFunc makes a Key of a function. It is called for each request, from any
// goroutine.
func KeyFunc(find func(*http.Request) (string, error)) Key {
	if find == nil {
		return Key{err: invalid("KeyFunc", "nil", "a function")}
	}
	return Key{native: true, find: func(r Request) (string, error) { return find(r.(native).Request) }}
}

// RequestKey makes a Key of a function that does with any server's request. It is
// called for each request, from any goroutine.
func RequestKey(find func(Request) (string, error)) Key {
	if find == nil {
		return Key{err: invalid("RequestKey", "nil", "a function")}
	}
	return Key{find: find}
}

// Header is the value of a request header, such as an API key. A request with
// none, or with more than one, has no key: which of two would be checked by whoever
// checks API keys is not ours to guess. Check API keys before you limit by them,
// or limit by address first: whoever may invent keys has as many budgets.
//
// A token that its client renews is a new budget each time, and one that lists groups
// and roles may be too long to be a key: count such clients by Value, under the name in
// the token.
func Header(name string) Key {
	canonical := http.CanonicalHeaderKey(name)
	if !isToken(name) || canonical == "Host" { // a server moves Host to Request.Host
		return Key{err: invalid("Header", fmt.Sprintf("%.64q", name), "a header name other than Host: letters, digits and !#$%&'*+-.^_`|~")}
	}
	missing := fmt.Errorf("%w: header %s is missing", ErrNoKey, canonical)
	repeated := fmt.Errorf("%w: header %s is there more than once", ErrNoKey, canonical)
	return Key{find: func(r Request) (string, error) {
		switch values := r.Header(canonical); {
		case len(values) == 0 || values[0] == "" && len(values) == 1:
			return "", missing
		case len(values) > 1:
			return "", repeated
		default:
			return values[0], nil
		}
	}}
}

var errNoPattern = fmt.Errorf("%w: no route pattern; the middleware must be inside of the router, around what is registered there", ErrNoKey)

// Pattern is the pattern of the route, such as "GET /items/{id}", as
// http.ServeMux has matched it: all requests of a route share a budget, whatever
// their path is. Wrap the handlers that you register; around the mux itself
// no request has a pattern yet. With another router use KeyFunc, or Fixed per route.
func Pattern() Key {
	return Key{find: func(r Request) (string, error) {
		if pattern := r.Pattern(); pattern != "" {
			return pattern, nil
		}
		return "", errNoPattern
	}}
}

// Value is a value of the request's context, a string or a fmt.Stringer: the
// user, as an authenticating middleware has left it there.
func Value(contextKey any) Key {
	if contextKey == nil || !reflect.TypeOf(contextKey).Comparable() {
		return Key{err: invalid("Value", fmt.Sprintf("a key of type %T", contextKey), "a key that can be compared, as context.WithValue wants it")}
	}
	missing := fmt.Errorf("%w: nothing in the context under a key of type %T", ErrNoKey, contextKey)
	return Key{find: func(r Request) (string, error) {
		switch v := r.Value(contextKey).(type) {
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

// Fixed is one key for all requests: one budget for all callers together, or a
// part of a Join.
func Fixed(key string) Key {
	if key == "" || len(key) > longestKey {
		return Key{err: invalid("Fixed", fmt.Sprintf("%.64q", key), fmt.Sprintf("1 to %d bytes", longestKey))}
	}
	return Key{find: func(Request) (string, error) { return key, nil }}
}

// Join is several keys as one: a budget for each user and route. It has no key
// where one of them has none, or all together are too long. No two lists of parts
// give the same key: each part but the last comes with its length, so ("a", "b:c") is
// "1:ab:c", and ("a:b", "c") is "3:a:bc".
func Join(keys ...Key) Key {
	if len(keys) == 0 {
		return Key{err: invalid("Join", "no keys", "at least one")}
	}
	finds, needsNative := make([]func(Request) (string, error), len(keys)), false
	for i, k := range keys {
		switch {
		case k.err != nil:
			return k
		case k.isZero():
			return Key{err: invalid("Join", fmt.Sprintf("a zero Key as part %d", i), "keys made by the functions of this package")}
		}
		finds[i], needsNative = k.find, needsNative || k.native
	}
	return Key{native: needsNative, find: func(r Request) (string, error) {
		var room [128]byte
		b := room[:0]
		for i, find := range finds {
			part, err := keyBy(find, r)
			if err != nil {
				return "", err
			}
			if i < len(finds)-1 {
				b = strconv.AppendInt(b, int64(len(part)), 10)
				b = append(b, ':')
			}
			b = append(b, part...)
		}
		return string(b), nil
	}}
}

// isToken reports whether s is a token of HTTP, as header names are.
func isToken(s string) bool {
	for i := range len(s) {
		c := s[i]
		letter := 'a' <= c|0x20 && c|0x20 <= 'z'
		digit := '0' <= c && c <= '9'
		if !letter && !digit && strings.IndexByte("!#$%&'*+-.^_`|~", c) < 0 {
			return false
		}
	}
	return s != ""
}
