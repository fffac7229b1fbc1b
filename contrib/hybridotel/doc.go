// Package hybridotel shows in OpenTelemetry what a hybrid node does: its counts as
// metrics ([Register]), its decisions on spans ([Annotate]).
//
// It uses the API of OpenTelemetry alone. SDK, readers and exporters are the
// program's choice.
//
// # Metrics
//
// Names, units and attributes are in the manner of aspnetcore.rate_limiting, the
// rate limiter in the semantic conventions. All names begin with hybrid.rate_limiting,
// and so do the attributes limiter, result ("allowed", "denied"), path ("floor",
// "exact", "memo", "fallback") and outcome. Of each limiter:
//
//	requests                 {request}    requests decided, by result and path; those of slices are not in it
//	slice.tokens             {token}      tokens admitted from slices
//	slice.granted_tokens     {token}      tokens that Redis granted to slices
//	slice.returned_tokens    {token}      tokens of slices given back unused
//	slice.recalled_tokens    {token}      those of them given back because another node needed them
//	slice.expired_tokens     {token}      tokens of slices that lapsed with their leases, or were on their way back when a call was lost
//	dropped_slices           {slice}      slices that Redis had forgotten, and had no room for
//	blocked_requests         {request}    requests that waited for Redis
//	shadowed_requests        {request}    requests denied, and allowed in shadow mode
//	operations               {operation}  accounts settled in Redis
//	failed_operations        {operation}  operations that failed, by outcome: "not_run" or "unknown"
//	rebuilt_accounts         {account}    accounts that were unreadable in Redis, and were replaced
//	invalid_tiers            {tier}       answers of LimitFor that were no limit
//	key.count                {key}        keys remembered now
//	waiter.count             {caller}     callers of Wait in line or waiting for their turn
//	fleet.size               {node}       live nodes, as last heard of Redis (a gauge)
//	overshoot                1            what the fleet may admit beyond the limit now, as a part of it (a gauge; +Inf: no bound; in shadow mode as if enforced)
//
// Of the node:
//
//	store.calls              {call}       calls to Redis that carried operations: round trips
//	store.call.duration      s            how long they took (a histogram)
//	store.call.operations    {operation}  how many operations each carried (a histogram)
//	operation.failures       {operation}  those of failed_operations once more, by error.type: "timeout", "no connection", "reply OOM", …
//	store.outages            {outage}     how often the node stopped waiting for Redis
//	store.down               {node}       1 while nobody waits for Redis, or for a part of it
//	store.sync_lag           s            since Redis last answered this node (a gauge); grows without limiters
//	poisoned_accounts        {account}    times that Redis refused one account alone
//	recall.errors            {error}      failed exchanges of which keys are scarce
//	key.limit                {key}        Options.MaxKeys
//	key.evictions            {key}        keys forgotten because of it
//	hook.dropped_events      {event}      events that the hooks were too slow for
//	log.dropped_lines        {line}       log lines that the Logger was too slow for, or failed at
//
// Admissions from slices are an instrument of their own, in tokens: the path that
// takes nanoseconds counts nothing else. Where every request costs one token,
// requests and slice.tokens add up to all requests.
//
// The denied requests of a limiter in shadow mode are among the denied ones of
// requests: shadowed_requests says how many of them passed all the same.
//
// failed_operations and operation.failures are the same operations, told of each limiter
// by what became of them, and of the node by why: whoever adds the two up counts each
// twice. The latter has those of closed limiters as well.
//
// docs/operations.md has the field of Stats for each of these, what it says and what is
// normal, and its name in hybridprom.
//
// No attribute ever holds a key: however many keys there are, the number of data
// points is that of the limiters, six of requests each. An SDK folds what is beyond
// its cardinality limit (2000 by default): that would be more than 300 limiters.
//
// # Histograms
//
// A node counts calls in buckets of its own, and the API has no histogram that is
// observed. A counter per bucket with the bound as an attribute would be none to any
// back end, and quantiles made by each node cannot be put together to those of a
// fleet. So the package records into real histograms, of the node's own buckets: at
// each reading, as many values in each bucket as the node has counted since the last
// one, so placed in their buckets that they add up to the sum of the node. Count, sum
// and buckets are exact; the least and the greatest value, and buckets other than
// the node's (by a view, or exponential ones), are as good as the node's buckets.
// They begin with Register, everything else with the node.
package hybridotel
