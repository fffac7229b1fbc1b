package measure

// Why says why a contestant is ahead of the library in a table, where its code
// tells; it is shown only where it is ahead.
func Why(table, row string) string { return reasons[table][row] }

var reasons = map[string]map[string]string{
	"memory": {
		"x/time/rate":                 "it looks nothing up. One lock, one clock reading and a multiplication, for one key.",
		"x/time/rate in an xsync map": "a floor does what its bucket does, one lock and one clock reading, and then looks whether the account in Redis is to be told, and how many servers share the limit. On slices, which read no clock and take no lock, `hybrid` is ahead.",
		"throttled (memory)":          "its key is a map entry and eight bytes, so it touches fewer cache lines than an account with a floor. It shares nothing, and forgets no key.",
		"go-limiter (memory)":         "a plain map under one read lock, and a bucket in one cache line. A floor also looks whether the account in Redis is to be told. The read lock is one word that all cores write.",
		"httprate":                    "a map from hash to count has no pointer to follow, so it touches the fewest cache lines. Keys whose hashes collide share a count.",
		"ulule (memory)":              "a counter of three words in a `sync.Map`, so it touches fewer cache lines than an account with a floor. It shares nothing between servers.",
	},
	"heap": {
		"throttled (memory)":          "eight bytes per key in a plain map, and nothing to settle with anybody: no floor, no memory of what Redis said, no lock. It forgets no key, so its total has no bound.",
		"go-limiter (memory)":         "a count, a tick and a lock in a plain map, and nothing to settle with anybody.",
		"httprate":                    "a count per 64-bit hash: it keeps no keys. Two keys with one hash share their limit.",
		"x/time/rate in an xsync map": "a bucket and its lock, and nothing to settle with anybody. Such a map forgets no key.",
		"ulule (memory)":              "a count, a time and a lock per key, and nothing to settle with anybody.",
	},
	"latency": {
		"redis_rate":         "a key's first request waits for Redis under `Strict` as it does with everybody, and for a hand-over to the goroutine that sends batches. Under `Balanced` it does not wait.",
		"ulule (Redis)":      "a key's first request waits for Redis under `Strict` as it does with everybody, and for a hand-over to the goroutine that sends batches. Under `Balanced` it does not wait.",
		"go-limiter (Redis)": "a key's first request waits for Redis under `Strict` as it does with everybody, and for a hand-over to the goroutine that sends batches. Under `Balanced` it does not wait.",
		"go-zero tokenlimit": "a key's first request waits for Redis under `Strict` as it does with everybody, and for a hand-over to the goroutine that sends batches. Under `Balanced` it does not wait.",
	},
	"maps": {
		"xsync v4 Map": "it hashes by the standard library's `maphash.Comparable` instead of through a function value, and goroutines that insert help to copy a table that grows, where those of v3 wait for the one that copies.",
		"sync.Map":     "it is a trie, which is never copied as it grows.",
	},
	"flood": {
		"x/time/rate":                 "it looks nothing up. A denial is one lock and one clock reading.",
		"x/time/rate in an xsync map": "a denial is one lock and one clock reading; a denial from memory here also says when to come back.",
		"go-limiter (memory)":         "a denial is two locks and one clock reading; a denial from memory here also says when to come back.",
	},
}
