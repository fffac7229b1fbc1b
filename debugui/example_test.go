package debugui_test

import (
	"crypto/subtle"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"

	"github.com/redis/go-redis/v9"

	"github.com/hybridlimit/hybrid"
	"github.com/hybridlimit/hybrid/debugui"
)

// basicAuth lets in who knows the password.
func basicAuth(user, password string, next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		u, p, _ := r.BasicAuth()
		// Both are compared, in constant time.
		if subtle.ConstantTimeCompare([]byte(u), []byte(user))&subtle.ConstantTimeCompare([]byte(p), []byte(password)) != 1 {
			w.Header().Set("WWW-Authenticate", `Basic realm="debug", charset="UTF-8"`)
			http.Error(w, "who are you?", http.StatusUnauthorized)
			return
		}
		next.ServeHTTP(w, r)
	})
}

// The page on a mux, behind basic authentication. Browse to it, or ask for its data:
//
//	curl -u operator:… -H 'Accept: application/json' http://localhost:8080/debug/hybrid
func ExampleHandler() {
	rdb := redis.NewClient(&redis.Options{Addr: "127.0.0.1:1"}) // nobody is there: a node works all the same
	defer rdb.Close()
	node, err := hybrid.New(rdb, &hybrid.Options{Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		panic(err)
	}
	defer node.Close()
	if _, err := node.Limiter("api", hybrid.PerMinute(1000), nil); err != nil {
		panic(err)
	}

	page, err := debugui.Handler(node, &debugui.Options{Name: "server-1"})
	if err != nil {
		panic(err)
	}
	mux := http.NewServeMux()
	mux.Handle("/debug/hybrid", basicAuth("operator", "secret", page))

	r := httptest.NewRequest(http.MethodGet, "/debug/hybrid", nil)
	r.Header.Set("Accept", "application/json")
	stranger := httptest.NewRecorder()
	mux.ServeHTTP(stranger, r)
	fmt.Println(stranger.Code)

	r.SetBasicAuth("operator", "secret")
	operator := httptest.NewRecorder()
	mux.ServeHTTP(operator, r)
	var data struct {
		Name     string
		Limiters []struct{ Name, Limit, Bound string }
	}
	if err := json.NewDecoder(operator.Body).Decode(&data); err != nil {
		panic(err)
	}
	fmt.Println(operator.Code, data)
	// Output:
	// 401
	// 200 {server-1 [{api 1,000 per minute at most 10 % above the limit}]}
}
