package hybridotel

import (
	"context"
	"fmt"
	"maps"
	"testing"
	"time"

	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"go.opentelemetry.io/otel/trace"

	"github.com/hybridlimit/hybrid"
)

// annotated returns what Annotate leaves on a span.
func annotated(t *testing.T, l *hybrid.Limiter, results ...hybrid.Result) map[string]string {
	t.Helper()
	exporter := tracetest.NewInMemoryExporter()
	tracer := sdktrace.NewTracerProvider(sdktrace.WithSyncer(exporter)).Tracer("test")
	ctx, span := tracer.Start(context.Background(), "request")
	for _, r := range results {
		Annotate(ctx, l, r)
	}
	span.End()
	attrs := map[string]string{}
	for _, kv := range exporter.GetSpans()[0].Attributes {
		attrs[string(kv.Key)] = kv.Value.String()
	}
	return attrs
}

func wantAttributes(t *testing.T, got, want map[string]string) {
	t.Helper()
	full := map[string]string{}
	for k, v := range want {
		full["hybrid.rate_limiting."+k] = v
	}
	if !maps.Equal(got, full) {
		t.Errorf("the span has %v, want %v", got, full)
	}
}

// What a limiter decides is on the span of the request.
func TestSpansTellDecisions(t *testing.T) {
	inBubble(t, func(w *world) {
		limit := hybrid.PerMinute(2)
		exact := w.limiter("login", limit, &hybrid.LimiterOptions{Accuracy: hybrid.Exact})
		results := w.ask(exact, "secret", 3, 0)
		wantAttributes(t, annotated(t, exact, results[0]), map[string]string{
			"limiter": "login", "result": "allowed", "path": "exact", "remaining": "1"})
		denied := annotated(t, exact, results...) // the last one stays
		retry := denied["hybrid.rate_limiting.retry_after"]
		wantAttributes(t, denied, map[string]string{
			"limiter": "login", "result": "denied", "path": results[2].Path.String(), "remaining": "0", "retry_after": retry})
		if d, err := time.ParseDuration(retry + "s"); err != nil || d != results[2].RetryAfter {
			t.Errorf("retry_after is %q, want %v in seconds", retry, results[2].RetryAfter)
		}

		never, err := exact.AllowN(context.Background(), "secret", 3)
		if err != nil {
			t.Fatal(err)
		}
		wantAttributes(t, annotated(t, exact, never), map[string]string{
			"limiter": "login", "result": "denied", "path": "exact", "remaining": fmt.Sprint(never.Remaining)})

		shadow := w.limiter("trial", limit, &hybrid.LimiterOptions{Accuracy: hybrid.Exact, Shadow: true})
		third := w.ask(shadow, "secret", 3, 0)[2]
		wantAttributes(t, annotated(t, shadow, third), map[string]string{
			"limiter": "trial", "result": "denied", "path": third.Path.String(), "remaining": "0", "shadowed": "true"})

		all, err := w.node.AllowAll(context.Background())
		if err != nil {
			t.Fatal(err)
		}
		wantAttributes(t, annotated(t, nil, all), map[string]string{"result": "allowed", "path": "slice", "remaining": "0"})
	})
}

// nowhere are contexts whose spans do not record.
func nowhere() map[string]context.Context {
	unsampled := sdktrace.NewTracerProvider(sdktrace.WithSampler(sdktrace.NeverSample())).Tracer("test")
	ctx, _ := unsampled.Start(context.Background(), "request")
	remote := trace.ContextWithRemoteSpanContext(context.Background(), trace.SpanContextFromContext(ctx))
	return map[string]context.Context{"no span": context.Background(), "unsampled": ctx, "remote": remote}
}

// A request whose span does not record pays nothing.
func TestAnnotateAllocatesNothingUnlessRecorded(t *testing.T) {
	inBubble(t, func(w *world) {
		api := w.limiter("api", hybrid.PerMinute(2), nil)
		r := hybrid.Result{RetryAfter: time.Second, Path: hybrid.PathMemo}
		for name, ctx := range nowhere() {
			if n := testing.AllocsPerRun(1000, func() { Annotate(ctx, api, r) }); n != 0 {
				t.Errorf("%s: %v allocations", name, n)
			}
		}
	})
}

func BenchmarkAnnotate(b *testing.B) {
	r := hybrid.Result{RetryAfter: time.Second, Path: hybrid.PathMemo}
	ctx, span := sdktrace.NewTracerProvider().Tracer("bench").Start(context.Background(), "request")
	defer span.End()
	contexts := nowhere()
	contexts["recorded"] = ctx
	for name, ctx := range contexts {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				Annotate(ctx, nil, r)
			}
		})
	}
}
