package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"
)

// output is what run prints, while it prints it.
type output struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (o *output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text.Write(p)
}

func (o *output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text.String()
}

// The server starts with no set-up, what it prints does what it says, and it
// ends when it is told to.
func TestCurlLines(t *testing.T) {
	t.Setenv("REDIS_URL", "")
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	out, ended := &output{}, make(chan error, 1)
	go func() { ended <- run(ctx, out, "127.0.0.1:0", "127.0.0.1:0") }()
	for deadline := time.Now().Add(10 * time.Second); !strings.Contains(out.String(), "/metrics"); {
		select {
		case err := <-ended:
			t.Fatalf("it ended: %v\n%s", err, out)
		case <-time.After(10 * time.Millisecond):
		}
		if time.Now().After(deadline) {
			t.Fatalf("it printed:\n%s", out)
		}
	}
	t.Log("\n" + out.String())
	checkTries(t, out.String())
	checkAdmin(t, out.String())
	stop()
	if err := <-ended; err != nil {
		t.Error(err)
	}
}

// checkTries sends what the printed lines send and compares the statuses.
func checkTries(t *testing.T, text string) {
	lines := regexp.MustCompile(`(?m)^# (.*): ([0-9 ]+)\n(.*)$`).FindAllStringSubmatch(text, -1)
	if len(lines) != len(tries) {
		t.Fatalf("%d curl lines, want %d", len(lines), len(tries))
	}
	for _, l := range lines {
		why, want, line := l[1], strings.Fields(l[2]), l[3]
		if rest, repeated := strings.CutPrefix(line, fmt.Sprintf("for i in $(seq %d); do ", len(want))); repeated {
			line = strings.TrimSuffix(rest, "; done")
		} else if len(want) > 1 {
			t.Errorf("%s: %d statuses of %s", why, len(want), line)
		}
		for _, status := range want {
			resp := curl(t, line)
			if strconv.Itoa(resp.StatusCode) != status {
				t.Errorf("%s: %d, want %s; %v", why, resp.StatusCode, status, resp.Header)
			}
			if denied := resp.StatusCode == http.StatusTooManyRequests; denied != (resp.Header.Get("Retry-After") != "") {
				t.Errorf("%s: %d with %v", why, resp.StatusCode, resp.Header)
			}
			if strings.Contains(line, "k1") && !strings.HasPrefix(resp.Header.Get("RateLimit"), `"hello";r=`) {
				t.Errorf("%s: %v", why, resp.Header)
			}
		}
	}
}

// checkAdmin looks at what operators see of the requests that checkTries has sent.
func checkAdmin(t *testing.T, text string) {
	urls := regexp.MustCompile(`For operators: (\S+) and (\S+)`).FindStringSubmatch(text)
	if urls == nil {
		t.Fatal("no addresses for operators")
	}
	for url, wants := range map[string][]string{
		urls[1]:                  {"<title>"},
		urls[1] + "?format=json": {`"hello"`, `"login"`},
		urls[2]:                  {`hybrid_decisions_total{limiter="login",path="exact",result="allowed"} 2`},
	} {
		resp, err := http.Get(url)
		if err != nil {
			t.Fatal(err)
		}
		body, err := io.ReadAll(resp.Body)
		resp.Body.Close()
		if err != nil || resp.StatusCode != http.StatusOK {
			t.Fatalf("%s: %d, %v", url, resp.StatusCode, err)
		}
		for _, want := range wants {
			if !strings.Contains(string(body), want) {
				t.Errorf("%s lacks %q", url, want)
			}
		}
	}
}

// curl does what a line of those does.
func curl(t *testing.T, line string) *http.Response {
	t.Helper()
	args := regexp.MustCompile(`'[^']*'|\S+`).FindAllString(line, -1)
	if len(args) < 3 || args[0] != "curl" || args[1] != "-si" {
		t.Fatalf("not a curl line: %q", line)
	}
	req, err := http.NewRequest(http.MethodGet, strings.Trim(args[len(args)-1], "'"), nil)
	if err != nil {
		t.Fatal(err)
	}
	for i := 2; i < len(args)-1; i += 2 {
		switch value := strings.Trim(args[i+1], "'"); args[i] {
		case "-H":
			name, v, _ := strings.Cut(value, ": ")
			req.Header.Set(name, v)
		case "-X":
			req.Method = value
		default:
			t.Fatalf("an option this test does not know: %s", args[i])
		}
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if _, err := io.Copy(io.Discard, resp.Body); err != nil {
		t.Fatal(err)
	}
	return resp
}

func TestBadRedisURL(t *testing.T) {
	t.Setenv("REDIS_URL", "http://example")
	if err := run(context.Background(), io.Discard, "127.0.0.1:0", "127.0.0.1:0"); err == nil || !strings.Contains(err.Error(), "REDIS_URL") {
		t.Errorf("%v", err)
	}
}
