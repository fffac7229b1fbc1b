package main

import (
	"fmt"
	"io"
	"strings"
)

// tries are the curl lines, and the statuses that they show on a fresh Redis.
var tries = []struct {
	why    string
	args   string // of curl; URL stands for the server's
	status []int
}{
	{"a key that is used up: the 429 says when to come back", "-H 'X-API-Key: k1' URL/hello", []int{200, 200, 200, 429}},
	{"another key has its own budget", "-H 'X-API-Key: k2' URL/hello", []int{200}},
	{"no key, no budget", "URL/hello", []int{401}},
	{"requests that cost 400 of 1000", "'URL/rows?n=400'", []int{200, 200, 429}},
	{"what is cheaper still fits", "'URL/rows?n=100'", []int{200}},
	{"logins", "-X POST URL/login", []int{200, 200, 429}},
}

// printTries prints what a reader can paste.
func printTries(out io.Writer, url string) {
	for _, t := range tries {
		line := "curl -si " + strings.ReplaceAll(t.args, "URL", url)
		if len(t.status) > 1 {
			line = fmt.Sprintf("for i in $(seq %d); do %s; done", len(t.status), line)
		}
		fmt.Fprintf(out, "# %s: %s\n%s\n\n", t.why, strings.Trim(fmt.Sprint(t.status), "[]"), line)
	}
}
