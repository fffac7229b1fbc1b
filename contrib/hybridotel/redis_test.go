package hybridotel_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/extra/redisotel/v9"
	"github.com/redis/go-redis/v9"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"

	"github.com/hybridlimit/hybrid"
)

// withoutBackground samples as another sampler does, but for the calls to Redis that belong
// to no request.
type withoutBackground struct{ sdktrace.Sampler }

func (s withoutBackground) ShouldSample(p sdktrace.SamplingParameters) sdktrace.SamplingResult {
	if hybrid.IsBackground(p.ParentContext) {
		return sdktrace.SamplingResult{Decision: sdktrace.Drop}
	}
	return s.Sampler.ShouldSample(p)
}

// traced is a client whose calls have spans, as docs/operations.md shows it.
func traced(addr string, provider *sdktrace.TracerProvider) (*redis.Client, error) {
	rdb := redis.NewClient(&redis.Options{Addr: addr})
	return rdb, redisotel.InstrumentTracing(rdb,
		redisotel.WithTracerProvider(provider),
		redisotel.WithDBStatement(false), // statements hold keys, and the script
		redisotel.WithDialFilter(true))   // connections are made for no request
}

// A client of Redis that traces shows the calls of requests and no key, and nothing of what a
// node sends in the background.
func Example_redis() {
	store := miniredis.NewMiniRedis()
	if err := store.Start(); err != nil {
		panic(err)
	}
	defer store.Close()
	spans := tracetest.NewInMemoryExporter()
	sampler := withoutBackground{sdktrace.ParentBased(sdktrace.AlwaysSample())}
	rdb, err := traced(store.Addr(), sdktrace.NewTracerProvider(sdktrace.WithSyncer(spans), sdktrace.WithSampler(sampler)))
	if err != nil {
		panic(err)
	}
	defer rdb.Close()
	node, err := hybrid.New(rdb, &hybrid.Options{StoreTimeout: time.Second})
	if err != nil {
		panic(err)
	}
	defer node.Close()
	api, err := node.Limiter("api", hybrid.PerMinute(100), nil)
	if err != nil {
		panic(err)
	}
	if _, err := api.Allow(context.Background(), "customer-42"); err != nil {
		panic(err)
	}
	if err := node.Flush(context.Background()); err != nil {
		panic(err)
	}
	fmt.Println(len(spans.GetSpans()), "spans of what the node does")

	if _, err := api.Peek(context.Background(), "customer-42"); err != nil {
		panic(err)
	}
	fmt.Println(len(spans.GetSpans()) > 0, "of a request for the state of a key")
	// Output:
	// 0 spans of what the node does
	// true of a request for the state of a key
}

// No span has a key or a line of the script, and without the sampler they are there: it is
// the context that tells them apart.
func TestSpansOfRedisHaveNoKeys(t *testing.T) {
	store := miniredis.RunT(t)
	spans := tracetest.NewInMemoryExporter()
	rdb, err := traced(store.Addr(), sdktrace.NewTracerProvider(sdktrace.WithSyncer(spans)))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = rdb.Close() })
	node, err := hybrid.New(rdb, &hybrid.Options{StoreTimeout: time.Second})
	if err != nil {
		t.Fatal(err)
	}
	api, err := node.Limiter("api", hybrid.PerMinute(100), &hybrid.LimiterOptions{Accuracy: hybrid.Exact})
	if err != nil {
		t.Fatal(err)
	}
	for range 3 {
		if r, err := api.Allow(context.Background(), "customer-42"); err != nil || !r.Allowed {
			t.Fatalf("%+v, %v", r, err)
		}
	}
	if err := node.Close(); err != nil {
		t.Error(err)
	}
	all := spans.GetSpans()
	if len(all) < 3 {
		t.Fatalf("%d spans of three requests that asked Redis", len(all))
	}
	for _, span := range all {
		if text := fmt.Sprint(span.Name, span.Attributes, span.Events, span.Status); strings.Contains(text, "customer-42") || strings.Contains(text, "redis.call") {
			t.Errorf("a span with a key or the script: %.300s", text)
		}
	}
}
