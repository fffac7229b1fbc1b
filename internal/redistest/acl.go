package redistest

import (
	"context"
	"testing"

	"github.com/redis/go-redis/v9"
)

// SetUser makes a user of the server with exactly these rules, or gives one these
// in place of those it had.
func (s *Server) SetUser(t testing.TB, name, password string, rules ...string) {
	t.Helper()
	args := []any{"acl", "setuser", name, "reset", "on", ">" + password}
	for _, r := range rules {
		args = append(args, r)
	}
	must(t, s.Client(t).Do(context.Background(), args...).Err())
}

// UserClient returns a client with default options that signs in, closed when the test ends.
func (s *Server) UserClient(t testing.TB, name, password string) *redis.Client {
	t.Helper()
	rdb := redis.NewClient(&redis.Options{Addr: s.Addr, Username: name, Password: password})
	t.Cleanup(func() { _ = rdb.Close() })
	return rdb
}
