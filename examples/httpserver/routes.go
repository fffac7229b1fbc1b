package main

import (
	"fmt"
	"net/http"
	"strconv"

	"github.com/hybridlimit/hybrid"
	"github.com/hybridlimit/hybrid/httplimit"
)

// newHandler is the API: three routes, and a limit for each.
func newHandler(node *hybrid.Node) (http.Handler, error) {
	byKey, err := limitByKey(node)
	if err != nil {
		return nil, err
	}
	byCost, err := limitByCost(node)
	if err != nil {
		return nil, err
	}
	logins, err := limitLogins(node)
	if err != nil {
		return nil, err
	}
	mux := http.NewServeMux()
	mux.Handle("GET /hello", byKey(say("hello")))
	mux.Handle("GET /rows", byCost(say("rows")))
	mux.Handle("POST /login", logins(say("welcome")))
	return mux, nil
}

func say(what string) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprintln(w, what) })
}

// limitByKey lets each API key have three at once, and six a minute in the long
// run. Strict, so that what the curl lines show is exact; Balanced, the default,
// asks Redis less often.
func limitByKey(node *hybrid.Node) (func(http.Handler) http.Handler, error) {
	hello, err := node.Limiter("hello", hybrid.PerMinute(6).WithBurst(3), &hybrid.LimiterOptions{Accuracy: hybrid.Strict})
	if err != nil {
		return nil, err
	}
	return httplimit.New(hello, &httplimit.Options{
		Key:     httplimit.Header("X-API-Key"),
		NoKey:   http.StatusUnauthorized,
		Headers: httplimit.IETF,
		Problem: true,
	})
}

// limitByCost takes as many tokens as rows are asked for.
func limitByCost(node *hybrid.Node) (func(http.Handler) http.Handler, error) {
	rows, err := node.Limiter("rows", hybrid.PerHour(1000), &hybrid.LimiterOptions{Accuracy: hybrid.Strict})
	if err != nil {
		return nil, err
	}
	return httplimit.New(rows, &httplimit.Options{
		Key: httplimit.RemoteIP(nil),
		Cost: func(r *http.Request) int64 {
			n, err := strconv.ParseInt(r.URL.Query().Get("n"), 10, 64)
			if err != nil || n < 1 || n > 500 {
				return 500 // what is not understood costs most
			}
			return n
		},
	})
}

// limitLogins lets each address try twice a minute, and nobody while Redis is away.
func limitLogins(node *hybrid.Node) (func(http.Handler) http.Handler, error) {
	logins, err := node.Limiter("login", hybrid.PerMinute(2), &hybrid.LimiterOptions{Accuracy: hybrid.Exact, OnFailure: hybrid.FailClosed})
	if err != nil {
		return nil, err
	}
	return httplimit.New(logins, &httplimit.Options{Headers: httplimit.NoHeaders})
}
