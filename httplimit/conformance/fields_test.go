package conformance

import (
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/dunglas/httpsfv"

	"github.com/hybridlimit/hybrid"
	"github.com/hybridlimit/hybrid/httplimit"
	"github.com/hybridlimit/hybrid/internal/httpsuite"
)

// item is what the draft allows in each of the two fields: one item, whose value
// is a String, with Integers as parameters.
type item struct {
	name   string
	params map[string]int64
}

// parse reads a field's lines as a List of structured fields, and writes it again:
// the bytes must be the canonical ones.
func parse(t testing.TB, lines []string) item {
	t.Helper()
	if len(lines) != 1 {
		t.Fatalf("%d lines: %q", len(lines), lines)
	}
	list, err := httpsfv.UnmarshalList(lines)
	if err != nil || len(list) != 1 {
		t.Fatalf("%q: %v, %v", lines, list, err)
	}
	if again, err := httpsfv.Marshal(list); err != nil || again != lines[0] {
		t.Errorf("%q is written %q, %v", lines[0], again, err)
	}
	it, ok := list[0].(httpsfv.Item)
	if !ok {
		t.Fatalf("%q holds a %T", lines, list[0])
	}
	got := item{params: map[string]int64{}}
	if got.name, ok = it.Value.(string); !ok {
		t.Fatalf("%q: the name is a %T", lines, it.Value)
	}
	for _, p := range it.Params.Names() {
		v, _ := it.Params.Get(p)
		if got.params[p], ok = v.(int64); !ok || got.params[p] < 0 {
			t.Fatalf("%q: %s is %v, a %T", lines, p, v, v)
		}
	}
	return got
}

// Over a real connection, from the first request to the denial.
func TestFieldsOnTheWire(t *testing.T) {
	w := httpsuite.NewWorld(t)
	limits := map[string]hybrid.Limit{
		"api":               hybrid.PerHour(3),
		`a "name" \ with ~`: hybrid.Window(3, time.Hour),
		"fast":              hybrid.Per(3, 1500*time.Second).WithBurst(3),
	}
	for name, limit := range limits {
		c := httpsuite.Listen(t, middleware(t, w.Limiter(name, limit), &httplimit.Options{Headers: httplimit.IETF})(served))
		for left := int64(2); left >= -1; left-- {
			resp := c.Get("/")
			now, policy := parse(t, resp.Header["Ratelimit"]), parse(t, resp.Header["Ratelimit-Policy"])
			if now.name != name || policy.name != name {
				t.Errorf("%q is called %q and %q", name, now.name, policy.name)
			}
			if now.params["r"] != max(left, 0) || now.params["t"] < 1 || len(now.params) != 2 {
				t.Errorf("%q with %d left: %v", name, left, now.params)
			}
			if policy.params["q"] != limit.Count() || policy.params["w"] != int64(limit.Period().Seconds()) || len(policy.params) != 2 {
				t.Errorf("%q: %v for %v", name, policy.params, limit)
			}
			retry := resp.Header.Get("Retry-After")
			if denied := resp.StatusCode == http.StatusTooManyRequests; denied != (left < 0) || denied != (retry != "") {
				t.Errorf("%q with %d left: %d, Retry-After %q", name, left, resp.StatusCode, retry)
			}
			// The draft: Retry-After is no earlier than the end of the effective window.
			if retry != "" && retry != fmt.Sprint(now.params["t"]) {
				t.Errorf("%q: Retry-After %s and t=%d", name, retry, now.params["t"])
			}
		}
	}
}

// Any limit and any name that can be written give fields that can be read, and
// a client that spreads what remains over t keeps to the limit.
func TestFieldsOfAnyLimit(t *testing.T) {
	world := httpsuite.NewWorld(t)
	rng := rand.New(rand.NewPCG(1, 2))
	for i := range 300 {
		limit := anyLimit(rng)
		name := fmt.Sprintf("%d %s", i, anyName(rng))
		h := middleware(t, world.Limiter(name, limit), &httplimit.Options{Headers: httplimit.IETF})(served)
		w := httptest.NewRecorder()
		h.ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/", nil))
		now, policy := parse(t, w.Header()["Ratelimit"]), parse(t, w.Header()["Ratelimit-Policy"])
		if now.name != name || policy.name != name || policy.params["w"] < 1 {
			t.Errorf("%v as %q: %+v, %+v", limit, name, now, policy)
		}
		perSecond := float64(limit.Count()) / limit.Period().Seconds()
		if now.params["t"] == largest {
			continue // more seconds than the field can say
		}
		if !limit.Windowed() && now.params["r"] > 1 && float64(now.params["r"])/float64(now.params["t"]) > perSecond*(1+1e-9) {
			t.Errorf("%v: %v invites more than %v per second", limit, now.params, perSecond)
		}
	}
}

// largest is the largest Integer of a structured field.
const largest = 999_999_999_999_999

func anyLimit(rng *rand.Rand) hybrid.Limit {
	count := 1 + rng.Int64N(1<<(1+rng.IntN(53)))
	period := time.Microsecond * time.Duration(1+rng.Int64N(1<<(1+rng.IntN(50))))
	if rng.IntN(2) == 0 {
		return hybrid.Window(count, period)
	}
	return hybrid.Per(count, period).WithBurst(1 + rng.Int64N(1<<(1+rng.IntN(53))))
}

func anyName(rng *rand.Rand) string {
	b := make([]byte, rng.IntN(100))
	for i := range b {
		b[i] = byte(' ' + rng.IntN('~'-' '+1))
	}
	return string(b)
}
