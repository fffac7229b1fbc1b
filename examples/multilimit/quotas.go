package main

import (
	"context"
	"fmt"

	"github.com/hybridlimit/hybrid"
)

// request is who asks: a user on behalf of a tenant.
type request struct{ user, tenant string }

func ofUser(r request) string   { return r.user }
func ofTenant(r request) string { return r.tenant }

// quota is one limit that each request must pass.
type quota struct {
	name    string // for people
	limiter *hybrid.Limiter
	key     func(request) string
}

// quotas are the limits that a request must pass, all of them. Those that end soon
// come first: what denies often denies before the others are asked.
type quotas struct {
	node *hybrid.Node
	all  []quota
}

func newQuotas(node *hybrid.Node) (*quotas, error) {
	q := &quotas{node: node}
	for _, add := range []struct {
		name  string
		limit hybrid.Limit
		key   func(request) string
	}{
		// A day could be a hybrid.Window as well, which begins at midnight UTC.
		{"user per second", hybrid.PerSecond(5), ofUser},
		{"tenant per second", hybrid.PerSecond(8), ofTenant},
		{"user per day", hybrid.PerDay(12), ofUser},
		{"tenant per day", hybrid.PerDay(30), ofTenant},
	} {
		l, err := node.Limiter(add.name, add.limit, &hybrid.LimiterOptions{Accuracy: hybrid.Strict})
		if err != nil {
			return nil, err
		}
		q.all = append(q.all, quota{add.name, l, add.key})
	}
	return q, nil
}

// allow asks all limits for one request. If one denies, the others are as if they
// had not been asked. all[Result.Check] is the limit that the answer is about.
func (q *quotas) allow(ctx context.Context, r request) (hybrid.Result, error) {
	checks := make([]hybrid.Check, len(q.all))
	for i, quota := range q.all {
		checks[i] = hybrid.Check{Limiter: quota.limiter, Key: quota.key(r)}
	}
	return q.node.AllowAll(ctx, checks...)
}

// used is what Redis says that a request's keys have used of a limit.
func (q *quotas) used(ctx context.Context, name string, r request) (int64, error) {
	for _, quota := range q.all {
		if quota.name == name {
			res, err := quota.limiter.Peek(ctx, quota.key(r))
			return res.Limit - res.Remaining, err
		}
	}
	return 0, fmt.Errorf("there is no limit %q", name)
}
