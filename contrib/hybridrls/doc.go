// Package hybridrls serves envoy.service.ratelimit.v3, the rate limit service
// that Envoy and the gateways built on it ask, from a hybrid node: a gateway has
// the library's limits without embedding it.
//
// A [Server] maps descriptors to limiters by a file of rules. cmd/hybridrls is the
// program around it; the README has both from the gateway's side.
//
// # Rules
//
// The file is YAML, one document per domain:
//
//	domain: edge                # as the gateway sends it
//	rules:
//	- name: per-user            # of the limiter and its accounts: edge/per-user
//	  match:                    # the entries of a descriptor, all of them, in order
//	  - key: user               # without a value: each value is a key of its own
//	  limit: 100/min
//	- name: login
//	  match:
//	  - key: route
//	    value: login            # this value alone
//	  - key: remote_address
//	  limit: 5/min
//	  on_failure: closed
//	overrides:                  # of limits that come with descriptors
//	  accuracy: strict
//
// The fields of a rule:
//
//	name        1 to 64 letters, digits, dots, dashes, underscores; once per domain
//	match       1 to 32 entries, each a key and, optionally, a value
//	limit       "100/min": a token bucket of 100 that refills at 100 a minute
//	            "100/s burst 500": one of 500 that refills at 100 a second
//	            "1000/day window": a fixed window
//	            "0/s": nothing passes; "unlimited": everything does, uncounted
//	            The period is s, min, h, day, week, or a duration such as 10s
//	accuracy    balanced (the default), strict, exact or within(over, under)
//	on_failure  local (the default), open or closed: while Redis does not answer
//	shadow      true: decides and counts, and always allows; Shadowed of the node's
//	            Stats is what it would have denied, and of the program's -admin,
//	            hybrid_shadowed_requests_total
//	overdraw    true: what does not fit is denied, and charged all the same
//
// Of overrides: accuracy, on_failure, shadow, window (true: fixed windows instead
// of token buckets) and ignore (true: limits that come with descriptors count for
// nothing). Without overrides they count, with the defaults.
//
// A file has up to 2 MiB of UTF-8, 1000 domains and 10,000 rules in each. A mistake
// is told with its line; its lines end with LF, CR or both.
//
// # Matching
//
// A rule matches a descriptor of as many entries, with the same keys in the same
// order, and the same values where it names them. What is nested in other
// services' files is a longer match here. Where several rules match, the most
// specific one holds: at the first entry where they differ, the one that names
// the value. All rules of that same match hold together, such as one a second and
// one a day. A descriptor without a rule is OK, and so is a domain without one;
// both are counted.
//
// # Answers
//
// A request is charged in all its limits or in none. If one denies, the answer is
// OVER_LIMIT and nobody is charged; its descriptor's status has the code, the
// limit and the numbers. If all admit, those are of the tightest limit. The other
// descriptors have a code alone: to ask for their numbers would cost a call to
// Redis for each. Limits in shadow mode are charged after the others have admitted,
// and never shown.
//
// requests_per_unit is the COUNT of a limit, for the protocol has no burst, and
// limit_remaining is never more: of "100/h burst 500", 100 remain until 401 are used,
// and of "100/h burst 10", 10 of 100 at first. duration_until_reset is the time until
// the whole burst is free. Counts above 4294967295, and what remains of them, are
// shown as that. The x-ratelimit headers of [Options] are of the burst.
//
// The hits of a descriptor are its own hits_addend, else the request's, else 1:
//
//   - 0, which only a descriptor can say, looks without charging: OVER_LIMIT if
//     one more would not pass. It asks Redis each time, and is looked at before
//     anything is charged.
//   - is_negative_hits gives hits back, whatever becomes of the other descriptors,
//     and is always OK.
//   - With overdraw, hits that do not fit are charged nonetheless, up to a debt of
//     one burst, unless a limit without it denies too: for costs that are known only
//     when they have been spent, such as the tokens of a language model. Look with 0
//     before, charge afterwards.
//
// A limit that comes with a descriptor takes the place of the rules that match it.
// It counts in the limiter DOMAIN/overrides, under the descriptor's entries and the
// limit itself: another limit is another account.
//
// # Failure
//
// While Redis does not answer, the rule's on_failure decides, never the gateway's
// failure mode: closed is OVER_LIMIT, not an error, since an error is what a gateway
// lets pass by default. Errors are InvalidArgument, for what only a gateway's
// configuration can cause (no domain, no descriptors or more than 100), Unavailable
// once the server is closed, and what ended the call's context. What a client of
// the gateway can choose, such as values of any length, is never an error. The one
// exception is not the service's: gRPC refuses a message whose texts are no UTF-8.
//
// # Reloading
//
// [Server.SetRules] changes all rules at once: a request sees those before or those
// after. What was used counts on under the same name: a changed limit is set in
// place, and a rule whose accuracy, on_failure or shadow changes has its limiter
// closed and made again, for which its requests wait, some milliseconds, a second
// at most while Redis is away. [Server.Watch] does it when a file changes.
package hybridrls
