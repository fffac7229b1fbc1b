package httpsuite

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"
	"time"
)

// Client calls a server on a real port.
type Client struct {
	URL string
	t   *testing.T
}

// NewClient calls the server at a URL.
func NewClient(t *testing.T, url string) *Client { return &Client{url, t} }

// Listen serves until the test ends.
func Listen(t *testing.T, h http.Handler) *Client {
	srv := httptest.NewServer(h)
	t.Cleanup(srv.Close)
	return NewClient(t, srv.URL)
}

// Get sends a request with headers given as "Name: value".
func (c *Client) Get(path string, headers ...string) *Answer {
	c.t.Helper()
	return c.Send(http.MethodGet, path, "", headers...)
}

// Send sends one with a method and a body of its own.
func (c *Client) Send(method, path, body string, headers ...string) *Answer {
	c.t.Helper()
	r, err := http.NewRequest(method, c.URL+path, strings.NewReader(body))
	if err != nil {
		c.t.Fatal(err)
	}
	for _, line := range headers {
		name, value, _ := strings.Cut(line, ": ")
		r.Header.Add(name, value)
	}
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		c.t.Fatal(err)
	}
	defer func() { _ = resp.Body.Close() }()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		c.t.Fatal(err)
	}
	return &Answer{resp, c.t, string(text)}
}

// Answer is a response that was read.
type Answer struct {
	*http.Response
	t    *testing.T
	body string
}

// Want fails the test unless a response has a status and headers, given as name
// and value in turn. A value of "" means that the header is absent.
func (a *Answer) Want(status int, headers ...string) *Answer {
	a.t.Helper()
	if a.StatusCode != status {
		a.t.Errorf("status %d, want %d; headers %v, body %q", a.StatusCode, status, a.Header, a.body)
	}
	for i := 0; i < len(headers); i += 2 {
		if got := strings.Join(a.Header.Values(headers[i]), " and "); got != headers[i+1] {
			a.t.Errorf("%s is %q, want %q", headers[i], got, headers[i+1])
		}
	}
	return a
}

// WantBody fails the test unless a response has a body.
func (a *Answer) WantBody(body string) {
	a.t.Helper()
	if a.body != body {
		a.t.Errorf("body %q, want %q", a.body, body)
	}
}

// wantRetry fails the test unless Retry-After is at most some time, and not much less.
func (a *Answer) wantRetry(most time.Duration) {
	a.t.Helper()
	s, err := strconv.Atoi(a.Header.Get("Retry-After"))
	if d := time.Duration(s) * time.Second; err != nil || d > most || d < most-time.Minute || s < 1 {
		a.t.Errorf("Retry-After is %q, want %v or a little less", a.Header.Get("Retry-After"), most)
	}
}
