package hybridotel

import (
	"context"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/trace"

	"github.com/hybridlimit/hybrid"
)

// Annotate describes a decision on the span of ctx. It takes nanoseconds and does not
// allocate if the span does not record.
//
// The attributes, all of them below hybrid.rate_limiting, are limiter, result
// ("allowed" or "denied"), path, remaining (tokens), of what was denied retry_after
// (seconds; absent if the cost can never fit), and shadowed (true) of what was denied and
// passed in shadow mode. There is none with the key.
//
// A span has one value of each attribute, so of two decisions the later one stays. Of
// AllowAll the limiter is checks[r.Check].Limiter. A Result that came with an error
// says nothing, and should not be told. If l is nil, limiter is left out.
func Annotate(ctx context.Context, l *hybrid.Limiter, r hybrid.Result) {
	if span := trace.SpanFromContext(ctx); span.IsRecording() {
		describe(span, l, r)
	}
}

func describe(span trace.Span, l *hybrid.Limiter, r hybrid.Result) {
	attrs := make([]attribute.KeyValue, 0, 6)
	if l != nil {
		attrs = append(attrs, limiterAttribute(l.Name()))
	}
	allowed := r.Allowed && !r.Shadowed
	attrs = append(attrs, resultAttribute(allowed), pathAttribute(r.Path), keyRemaining.Int64(r.Remaining))
	if !r.Allowed && r.RetryAfter != hybrid.Never {
		attrs = append(attrs, keyRetryAfter.Float64(r.RetryAfter.Seconds()))
	}
	if r.Shadowed {
		attrs = append(attrs, keyShadowed.Bool(true))
	}
	span.SetAttributes(attrs...)
}
