package hybridotel_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"
	"go.opentelemetry.io/otel/attribute"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"

	"github.com/hybridlimit/hybrid"
	"github.com/hybridlimit/hybrid/contrib/hybridotel"
	"github.com/hybridlimit/hybrid/httplimit"
)

// newNode makes a node on an embedded Redis, for examples that run anywhere.
func newNode() (*hybrid.Node, func()) {
	store := miniredis.NewMiniRedis()
	if err := store.Start(); err != nil {
		panic(err)
	}
	rdb := redis.NewClient(&redis.Options{Addr: store.Addr()})
	// A second, so that the output does not depend on how busy the machine is.
	node, err := hybrid.New(rdb, &hybrid.Options{StoreTimeout: time.Second})
	if err != nil {
		panic(err)
	}
	return node, func() {
		_ = node.Close()
		_ = rdb.Close()
		store.Close()
	}
}

// A program that exports metrics already registers its node once, after it has made
// it. Here the reader is asked by hand.
func ExampleRegister() {
	node, stop := newNode()
	defer stop()
	reader := sdkmetric.NewManualReader()
	provider := sdkmetric.NewMeterProvider(sdkmetric.WithReader(reader))
	reg, err := hybridotel.Register(node, &hybridotel.Options{MeterProvider: provider})
	if err != nil {
		panic(err)
	}
	defer reg.Unregister()

	login, err := node.Limiter("login", hybrid.PerMinute(3), &hybrid.LimiterOptions{Accuracy: hybrid.Exact})
	if err != nil {
		panic(err)
	}
	for range 5 {
		if _, err := login.Allow(context.Background(), "customer-42"); err != nil {
			panic(err) // misuse; a failing Redis is no error
		}
	}

	var all metricdata.ResourceMetrics
	if err := reader.Collect(context.Background(), &all); err != nil {
		panic(err)
	}
	results := map[string]int64{} // by result; of each there are several paths
	for _, m := range all.ScopeMetrics[0].Metrics {
		if m.Name != "hybrid.rate_limiting.requests" {
			continue
		}
		for _, point := range m.Data.(metricdata.Sum[int64]).DataPoints {
			result, _ := point.Attributes.Value("hybrid.rate_limiting.result")
			results[result.AsString()] += point.Value
		}
	}
	fmt.Println(results)
	// Output: map[allowed:3 denied:2]
}

// A handler whose requests have spans says on them what was decided.
func ExampleAnnotate() {
	node, stop := newNode()
	defer stop()
	spans := tracetest.NewInMemoryExporter()
	tracer := sdktrace.NewTracerProvider(sdktrace.WithSyncer(spans)).Tracer("api")
	api, err := node.Limiter("api", hybrid.PerMinute(1), &hybrid.LimiterOptions{Accuracy: hybrid.Exact})
	if err != nil {
		panic(err)
	}
	handle := func(customer string) {
		ctx, span := tracer.Start(context.Background(), "GET /items")
		defer span.End()
		res, err := api.Allow(ctx, customer)
		if err != nil {
			panic(err)
		}
		hybridotel.Annotate(ctx, api, res)
	}
	handle("customer-42")
	handle("customer-42")

	for _, span := range spans.GetSpans() {
		fmt.Println(words(span.Attributes, "limiter", "result"))
	}
	// Output:
	// limiter=api result=allowed
	// limiter=api result=denied
}

// Where a request must pass several limits, the span says which one decided.
func ExampleAnnotate_allowAll() {
	node, stop := newNode()
	defer stop()
	spans := tracetest.NewInMemoryExporter()
	tracer := sdktrace.NewTracerProvider(sdktrace.WithSyncer(spans)).Tracer("api")
	tenants, err := node.Limiter("tenant", hybrid.PerMinute(100), nil)
	if err != nil {
		panic(err)
	}
	users, err := node.Limiter("user", hybrid.PerMinute(1), &hybrid.LimiterOptions{Accuracy: hybrid.Exact})
	if err != nil {
		panic(err)
	}
	for range 2 {
		ctx, span := tracer.Start(context.Background(), "GET /items")
		checks := []hybrid.Check{{Limiter: tenants, Key: "7"}, {Limiter: users, Key: "7/42"}}
		res, err := node.AllowAll(ctx, checks...)
		if err != nil {
			panic(err)
		}
		hybridotel.Annotate(ctx, checks[res.Check].Limiter, res)
		span.End()
	}
	fmt.Println(words(spans.GetSpans()[1].Attributes, "limiter", "result"))
	// Output: limiter=user result=denied
}

// A middleware that writes on the spans of its requests what was decided of them,
// whatever it was. The same does in hybridgrpc.ServerOptions.
func ExampleAnnotate_middleware() {
	node, stop := newNode()
	defer stop()
	spans := tracetest.NewInMemoryExporter()
	tracer := sdktrace.NewTracerProvider(sdktrace.WithSyncer(spans)).Tracer("api")
	api, err := node.Limiter("api", hybrid.PerMinute(1), &hybrid.LimiterOptions{Accuracy: hybrid.Exact})
	if err != nil {
		panic(err)
	}
	trial, err := node.Limiter("trial", hybrid.PerMinute(0), &hybrid.LimiterOptions{Shadow: true})
	if err != nil {
		panic(err)
	}
	limit, err := httplimit.New(api, &httplimit.Options{
		Cost: func(r *http.Request) int64 { return int64(len(r.URL.Query()["item"])) },
		More: []httplimit.Check{{Limiter: trial, Cost: func(r *http.Request) int64 { return int64(len(r.URL.Query()["trial"])) }}},
		Decided: func(r *http.Request, d httplimit.Decision) {
			hybridotel.Annotate(r.Context(), d.Limiter, d.Result)
		},
	})
	if err != nil {
		panic(err)
	}
	items := limit(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	traced := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { // in place of otelhttp
		ctx, span := tracer.Start(r.Context(), "GET /items")
		defer span.End()
		items.ServeHTTP(w, r.WithContext(ctx))
	})
	for _, url := range []string{"/items?item=1", "/items?item=1", "/items?trial=1", "/items"} {
		traced.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest(http.MethodGet, url, nil))
	}

	for _, span := range spans.GetSpans() {
		fmt.Println("span:", words(span.Attributes, "limiter", "result", "shadowed"))
	}
	// Output:
	// span: limiter=api result=allowed
	// span: limiter=api result=denied
	// span: limiter=trial result=denied shadowed=true
	// span:
}

// words shows some attributes of a span.
func words(attrs []attribute.KeyValue, names ...string) string {
	var out []string
	for _, name := range names {
		for _, kv := range attrs {
			if string(kv.Key) == "hybrid.rate_limiting."+name {
				out = append(out, name+"="+kv.Value.String())
			}
		}
	}
	return strings.Join(out, " ")
}
