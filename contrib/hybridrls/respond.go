package hybridrls

import (
	"strconv"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	rlsv3 "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/structpb"

	"github.com/hybridlimit/hybrid"
	"github.com/hybridlimit/hybrid/internal/fields"
)

// respond writes an answer, with a status per descriptor.
func (s *Server) respond(req *rlsv3.RateLimitRequest, v *verdict) *rlsv3.RateLimitResponse {
	resp := &rlsv3.RateLimitResponse{OverallCode: codeOf(!v.denied)}
	shown := make([]*answer, len(req.GetDescriptors()))
	var decided *answer
	for i := range v.answers {
		a := &v.answers[i]
		if at := &shown[a.hit.descriptor]; *at == nil || a.before(*at) {
			*at = a
		}
		if decided == nil || a.before(decided) {
			decided = a
		}
	}
	for _, a := range shown {
		resp.Statuses = append(resp.Statuses, statusOf(a))
	}
	if v.denied {
		s.counters.denied.Add(1)
		resp.DynamicMetadata = metadata(decided)
	} else {
		s.counters.allowed.Add(1)
	}
	if s.headers && decided != nil {
		resp.ResponseHeadersToAdd = headers(&decided.result)
	}
	return resp
}

// before reports whether an answer says more than another: a denial more than an
// admission, and less of a limit more than much of one.
func (a *answer) before(b *answer) bool {
	if a.result.Allowed != b.result.Allowed {
		return !a.result.Allowed
	}
	return float64(a.result.Remaining)*float64(b.result.Limit) < float64(b.result.Remaining)*float64(a.result.Limit)
}

func codeOf(allowed bool) rlsv3.RateLimitResponse_Code {
	if allowed {
		return rlsv3.RateLimitResponse_OK
	}
	return rlsv3.RateLimitResponse_OVER_LIMIT
}

func statusOf(a *answer) *rlsv3.RateLimitResponse_DescriptorStatus {
	if a == nil {
		return &rlsv3.RateLimitResponse_DescriptorStatus{Code: rlsv3.RateLimitResponse_OK}
	}
	limit := currentLimit(a.hit.rule.name, a.hit.limit)
	return &rlsv3.RateLimitResponse_DescriptorStatus{
		Code:         codeOf(a.result.Allowed),
		CurrentLimit: limit,
		// The protocol has no burst. More than the limit would be read as less than
		// nothing used.
		LimitRemaining:     min(small(a.result.Remaining), limit.GetRequestsPerUnit()),
		DurationUntilReset: durationpb.New(fields.UntilReset(&a.result)),
	}
}

// metadata says who denied, for the gateway's log: the limiter, and whether the
// failure policy did.
func metadata(a *answer) *structpb.Struct {
	return &structpb.Struct{Fields: map[string]*structpb.Value{
		"limiter": structpb.NewStringValue(a.hit.limiter.Name()),
		"path":    structpb.NewStringValue(a.result.Path.String()),
	}}
}

func headers(r *hybrid.Result) []*corev3.HeaderValue {
	all := []*corev3.HeaderValue{
		header("x-ratelimit-limit", r.Limit),
		header("x-ratelimit-remaining", r.Remaining),
		header("x-ratelimit-reset", fields.WholeSeconds(fields.UntilReset(r))),
	}
	if s, ok := fields.RetryAfter(r); ok {
		all = append(all, header("retry-after", s))
	}
	return all
}

func header(name string, value int64) *corev3.HeaderValue {
	return &corev3.HeaderValue{Key: name, Value: strconv.FormatInt(value, 10)}
}
