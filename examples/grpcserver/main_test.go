package main

import (
	"bytes"
	"context"
	"regexp"
	"strings"
	"testing"
	"time"
)

// What the program prints is what it is for: a denial with all of its details, and
// clients whose calls all pass, no faster than the limit.
func TestGRPCServer(t *testing.T) {
	t.Setenv("REDIS_URL", "")
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	var out bytes.Buffer
	if err := run(ctx, &out); err != nil {
		t.Fatalf("%v\n%s", err, out.String())
	}
	t.Log("\n" + out.String())
	for _, want := range []string{
		`OK  SERVING, x-ratelimit-remaining \[2\]`,
		`ResourceExhausted  limit "per-key" is exceeded; retry after \d+ms`,
		`RetryInfo     \d+ms`,
		`QuotaFailure  per-key: The limit of 3`,
		`x-ratelimit-limit      \[3\]`,
		`x-ratelimit-remaining  \[0\]`,
		`retry-after            \[1\]`,
		`grpc-retry-pushback-ms \[\d+\]`,
	} {
		if !regexp.MustCompile(want).MatchString(out.String()) {
			t.Errorf("the output lacks %s", want)
		}
	}
	if strings.Contains(out.String(), "key-of-ann") {
		t.Error("the key is shown")
	}
	checkPace(t, out.String())
}

// checkPace looks at when the last call of each polite client passed: two calls more
// than fit at once take two thirds of the limit's period.
func checkPace(t *testing.T, text string) {
	t.Helper()
	least := perKey.Period() * (someCalls - time.Duration(perKey.Burst())) / time.Duration(perKey.Count())
	acts := strings.Split(text, "\n\n")
	for _, act := range acts[len(acts)-2:] {
		passed := regexp.MustCompile(`OK after (\S+)`).FindAllStringSubmatch(act, -1)
		if len(passed) != someCalls {
			t.Errorf("%d calls passed in %s", len(passed), act)
			continue
		}
		if last, err := time.ParseDuration(passed[someCalls-1][1]); err != nil || last < least-50*time.Millisecond {
			t.Errorf("the last call passed after %v, %v; want %v", last, err, least)
		}
	}
}

func TestBadRedisURL(t *testing.T) {
	t.Setenv("REDIS_URL", "http://example")
	if err := run(context.Background(), &bytes.Buffer{}); err == nil || !strings.Contains(err.Error(), "REDIS_URL") {
		t.Errorf("%v", err)
	}
}
