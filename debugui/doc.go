// Package debugui is a page about one node, for the person who is on call: whether
// all is well and, if not, what; who is limited, by what and why.
//
//	page, err := debugui.Handler(node, nil)
//	...
//	mux.Handle("/debug/hybrid", yourAuth(page))
//
// It shows what package hybrid counts anyway: decisions a second by path and limiter,
// the health of Redis and its outages, how long calls take and how many operations
// they carry, what a request costs Redis, keys, evictions and the fleet, the bound
// that is in force now, the keys that are denied most, and what the node and Redis
// know of any one key.
//
// # What it costs
//
// Nothing while nobody looks. While somebody does, the node is looked at once a
// second, whatever the number of viewers: [hybrid.Node.Stats] and, for up to 24 limiters
// that deny most, [hybrid.Limiter.Denied], each of which reads every key that is in touch
// with Redis. A key's story is one operation in Redis, every two seconds while a page
// shows it, and charges nothing.
//
// Two minutes of counts are kept, of the 96 limiters that decide most, and some seconds
// of all others. All that is kept, the keys that were listed too, is freed when nobody has
// looked for two minutes. A limiter that is closed is not held.
//
// # Safety
//
// The page has no authentication of its own: mount it behind yours. It only reads,
// with GET and HEAD. It is one file without any other: scripts, styles and data
// come from where the page came from, and its Content-Security-Policy allows nothing
// else. Responses are not stored, and not framed.
//
// Keys are masked unless [Options.ShowKeys] is set. A key may be a secret, or a
// person: the page does not know the keys that it lists, but asks with an id that this
// process alone can resolve, for some minutes. A key that somebody types is sent in a
// request header, since URLs end up in logs. Names and keys may be any bytes; they are
// shown as text.
//
// # Limits
//
// Limiters with a LimitFor are shown with their own limit; a key's story has the key's.
//
// A limiter in shadow mode denies nothing. All of its requests count as admitted,
// "shadowed" is how many of them would be denied, and what the fleet admits has no bound.
// Its paths, its chart and the list of keys that are denied most say what would be.
//
// # Data
//
// Programs get the same as JSON, from the same path, with Accept: application/json or
// ?format=json. Each figure has its value, and its text as the page shows it; values
// are null where they are not known or have no bound. Rates need a second look: ask
// twice, a second apart. A key's story:
//
//	curl -H 'Hybrid-Key: customer-42' 'http://…/debug/hybrid?format=json&limiter=api'
//	curl -H 'Hybrid-Key-Id: 5f0c…' 'http://…/debug/hybrid?format=json'   # one of "denied"
//
// The bytes of Hybrid-Key are percent-encoded where they are not visible ASCII, and a
// percent sign is %25. Fields may come in any release; those that are there keep their
// meaning.
package debugui
