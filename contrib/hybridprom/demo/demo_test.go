package main

import (
	"io"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9/logging"
)

// The client's own log of broken connections is what the demo is about.
func init() { logging.Disable() }

func TestFlags(t *testing.T) {
	t.Setenv("REDIS_URL", "")
	c, err := parse(nil, io.Discard)
	if want := (config{"redis://127.0.0.1:6379", 3, 9101, 500, 2 * time.Minute, 20 * time.Second}); err != nil || c != want {
		t.Errorf("%+v, %v", c, err)
	}
	t.Setenv("REDIS_URL", "redis://elsewhere:1")
	if c, err := parse([]string{"-nodes", "2", "-outage", "0"}, io.Discard); err != nil || c.redis != "redis://elsewhere:1" || c.nodes != 2 || c.outage != 0 {
		t.Errorf("%+v, %v", c, err)
	}
	for _, bad := range []string{"-nodes 0", "-nodes 21", "-port -1", "-port 65535", "-rate 0", "-outage -1s", "-outage 2m -every 1m", "more", "-unknown"} {
		if c, err := parse(strings.Fields(bad), io.Discard); err == nil {
			t.Errorf("%s: %+v", bad, c)
		}
	}
}

func TestStartSaysWhatIsWrong(t *testing.T) {
	if _, err := start(config{redis: "http://127.0.0.1", nodes: 1}); err == nil || !strings.Contains(err.Error(), "-redis") {
		t.Error(err)
	}
	f, err := start(config{redis: "redis://127.0.0.1:1", nodes: 1}) // that there is no Redis is none of its errors
	if err != nil {
		t.Fatal(err)
	}
	f.stop()
}
