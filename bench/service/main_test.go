package service

import (
	"context"
	"os"
	"testing"

	"github.com/redis/go-redis/v9"
)

// silent is the clients' log: connections fail while a server starts and ends.
type silent struct{}

func (silent) Printf(context.Context, string, ...any) {}

func TestMain(m *testing.M) {
	redis.SetLogger(silent{})
	os.Exit(m.Run())
}
