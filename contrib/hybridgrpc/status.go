package hybridgrpc

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/protoadapt"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/hybridlimit/hybrid"
)

// denied is the error of a call that was denied.
func (s *server) denied(ctx context.Context, call Call, v *verdict) error {
	d := v.decision(call)
	if s.options.Deny != nil {
		if err := s.options.Deny(ctx, d); err != nil {
			return err
		}
	}
	subject := d.Name
	if s.options.Subject != nil {
		subject = s.options.Subject(d)
	}
	return denial(&d, subject).Err()
}

// denial is the status of a call that was denied.
func denial(d *Decision, subject string) *status.Status {
	delay, waitHelps := d.RetryAfter()
	retry := &errdetails.RetryInfo{RetryDelay: durationpb.New(delay)}
	if d.Code == codes.Unavailable { // nobody exceeded anything
		return withDetails(codes.Unavailable, fmt.Sprintf("limit %s cannot be checked now; retry after %v", inText(d.Name), delay), retry)
	}
	quota := &errdetails.QuotaFailure_Violation{Subject: inProto(subject)}
	failure := &errdetails.QuotaFailure{Violations: []*errdetails.QuotaFailure_Violation{quota}}
	if !waitHelps {
		quota.Description = fmt.Sprintf("The call costs more than the limit, which is %d.", d.Result.Limit)
		return withDetails(codes.ResourceExhausted, fmt.Sprintf("limit %s can never admit the call", inText(d.Name)), failure)
	}
	quota.Description = fmt.Sprintf("The limit of %d is used up, or has no room for the call's cost.", d.Result.Limit)
	return withDetails(codes.ResourceExhausted, fmt.Sprintf("limit %s is exceeded; retry after %v", inText(d.Name), delay), retry, failure)
}

// failed is the error of a call that could not be decided.
func (s *server) failed(ctx context.Context, err error) error {
	if s.options.Failure != nil {
		if own := s.options.Failure(ctx, err); own != nil {
			return own
		}
	}
	return failure(err, s.noKey)
}

// failure is the default error of a call that could not be decided. What err says is
// for this process: the other end gets a status.
func failure(err error, noKey codes.Code) error {
	var st *status.Status
	switch {
	case errors.Is(err, ErrNoKey):
		st = status.New(noKey, "the call does not say clearly who it comes from")
	case errors.Is(err, context.Canceled):
		st = status.New(codes.Canceled, "the call was left before it was decided whether it passes")
	case errors.Is(err, context.DeadlineExceeded):
		st = status.New(codes.DeadlineExceeded, "the call's time ends before it passes its limit")
	case errors.Is(err, hybrid.ErrClosed):
		st = withDetails(codes.Unavailable, "the limiter is closed", &errdetails.RetryInfo{RetryDelay: durationpb.New(time.Second)})
	default: // a negative cost
		st = status.New(codes.Internal, "the limit could not be checked")
	}
	return &refusal{status: st, cause: err}
}

// withDetails makes a status with details, which all can be marshalled.
func withDetails(code codes.Code, text string, details ...protoadapt.MessageV1) *status.Status {
	st := status.New(code, text)
	if full, err := st.WithDetails(details...); err == nil {
		return full
	}
	return st
}

// longestSubject bounds what a detail names: clients refuse a trailer that is too
// long, some of them from 8 KiB on.
const longestSubject = 256

// inProto makes text a string that a protocol buffer takes: names and keys may be any
// bytes.
func inProto(s string) string {
	if len(s) > longestSubject {
		s = s[:longestSubject]
	}
	return strings.ToValidUTF8(s, "\uFFFD")
}

// inText quotes a name for a message.
func inText(name string) string { return fmt.Sprintf("%.64q", name) }
