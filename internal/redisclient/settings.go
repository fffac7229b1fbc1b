// Package redisclient looks at the settings of a client of go-redis, and warns of those under
// which the library cannot do what it promises.
package redisclient

import (
	"cmp"
	"fmt"
	"log/slog"
	"time"

	"github.com/redis/go-redis/v9"
)

// Settings is what the library's calls meet in a client of go-redis,
// after its defaults. A time limit of 0 is none.
type Settings struct {
	options string // the type of its options

	read, write time.Duration
	bound       bool // the calls end with their context, whatever read and write are
	dial        time.Duration
	dialPause   time.Duration

	pool, active, leastPool int // connections to one server; active 0: no bound of its own
	poolTimeout             time.Duration

	limiter     bool
	noRedirects bool
	replicas    string // the option by which a replica may be read
	shardCheck  time.Duration
}

// Of looks at a client. known is false for a kind that is not
// go-redis's own. made is false for a client that no constructor has made:
// whatever it is asked to do will crash.
func Of(rdb redis.UniversalClient) (s Settings, known, made bool) {
	defer func() {
		if recover() != nil {
			s, known, made = Settings{}, true, false
		}
	}()
	switch rdb := rdb.(type) {
	case *redis.Client:
		return ofClient(rdb.Options()), true, true
	case *redis.ClusterClient:
		return ofCluster(rdb.Options()), true, true
	case *redis.Ring:
		return ofRing(rdb.Options()), true, true
	}
	return s, false, true
}

// What a node uses of one server's pool at once: eight calls that settle, a
// heartbeat, and a look at the marks of scarce keys. The calls of a cluster
// spread over its servers, and most of them go through the pools for pipelines.
const (
	mostConns        = 10
	mostClusterConns = 5
)

// shardConns is mostConns of a ring, which shares the calls out to its shards.
func shardConns(shards int) int { return max(8/max(shards, 1), 2) + 2 }

// Defaults of go-redis that its options show only after a server's own client
// is made of them.
const (
	defaultReadTimeout = 5 * time.Second
	defaultDialTimeout = 5 * time.Second
)

// ofClient reads options that are complete: a time limit of -1 has become 0, and
// one of -2, by which no deadline is set at all, -1.
func ofClient(o *redis.Options) Settings {
	return Settings{
		options: "redis.Options",
		read:    max(o.ReadTimeout, 0), write: max(o.WriteTimeout, 0), bound: o.ContextTimeoutEnabled,
		dial: o.DialTimeout, dialPause: o.DialerRetryTimeout,
		pool: o.PoolSize, active: o.MaxActiveConns, leastPool: mostConns,
		poolTimeout: o.PoolTimeout,
		limiter:     o.Limiter != nil,
	}
}

// ofCluster reads options of which the clients of the servers are made: there a
// limit of 0 means the default, also one that was -1 when the user set it.
func ofCluster(o *redis.ClusterOptions) Settings {
	read := serverTimeout(o.ReadTimeout, defaultReadTimeout)
	return Settings{
		options: "redis.ClusterOptions",
		read:    read, write: serverTimeout(o.WriteTimeout, read), bound: o.ContextTimeoutEnabled,
		dial: o.DialTimeout, dialPause: o.DialerRetryTimeout,
		pool: o.PoolSize, active: o.MaxActiveConns, leastPool: mostClusterConns,
		poolTimeout: cmp.Or(o.PoolTimeout, defaultReadTimeout),
		noRedirects: o.MaxRedirects <= 0,
		replicas:    replicaOption(o),
	}
}

func replicaOption(o *redis.ClusterOptions) string {
	switch {
	case o.RouteByLatency:
		return "RouteByLatency"
	case o.RouteRandomly:
		return "RouteRandomly"
	case o.ReadOnly:
		return "ReadOnly"
	}
	return ""
}

func ofRing(o *redis.RingOptions) Settings {
	read := serverTimeout(o.ReadTimeout, defaultReadTimeout)
	return Settings{
		options: "redis.RingOptions",
		read:    read, write: serverTimeout(o.WriteTimeout, read), bound: o.ContextTimeoutEnabled,
		dial: cmp.Or(o.DialTimeout, defaultDialTimeout), dialPause: o.DialerRetryTimeout,
		pool: cmp.Or(o.PoolSize, mostConns), active: o.MaxActiveConns, leastPool: shardConns(len(o.Addrs)),
		poolTimeout: cmp.Or(o.PoolTimeout, defaultReadTimeout),
		limiter:     o.Limiter != nil,
		shardCheck:  o.HeartbeatFrequency,
	}
}

// serverTimeout is what a server's client makes of a time limit.
func serverTimeout(d, standard time.Duration) time.Duration {
	return max(cmp.Or(d, standard), 0)
}

// risk is a setting of the client under which the library cannot do what it
// promises.
type risk struct {
	field       string
	value       any
	recommended string
	why         string
}

// riskList collects the risky settings of one client.
type riskList struct {
	options string
	found   []risk
}

func (l *riskList) add(risky bool, field string, value any, recommended, why string) {
	if risky {
		l.found = append(l.found, risk{l.options + "." + field, value, recommended, why})
	}
}

// risks lists the risky settings. The defaults of go-redis are none.
func (s *Settings) risks(storeTimeout time.Duration) []risk {
	l := &riskList{options: s.options}
	wait := min(storeTimeout, time.Second) // a call may take a second, and callers may wait for less
	s.timeoutRisks(l, wait)
	s.poolRisks(l, wait)
	s.kindRisks(l)
	return l.found
}

const (
	shortestReadTimeout = 100 * time.Millisecond
	longestReadTimeout  = 10 * time.Second
	longestDial         = 5 * time.Second
	longestDialPause    = time.Second
	shortestShardCheck  = 100 * time.Millisecond
)

func (s *Settings) timeoutRisks(l *riskList, wait time.Duration) {
	l.add(!s.bound && !inTime(s.read), "ReadTimeout", limitText(s.read), "1s to 10s, or ContextTimeoutEnabled",
		"a server that never answers keeps calls and connections")
	l.add(s.read > 0 && s.read < max(shortestReadTimeout, wait), "ReadTimeout", s.read, "at least 1s",
		"every pause of Redis that is longer leaves slices in doubt, which then lapse")
	l.add(!s.bound && !inTime(s.write) && s.write != s.read, "WriteTimeout", limitText(s.write), "1s to 10s, or ContextTimeoutEnabled",
		"a server that takes nothing keeps calls and connections")
	l.add(s.dial > longestDial, "DialTimeout", s.dial, "1s to 5s",
		"when Redis is back, connections wait for attempts that began before")
	l.add(s.dialPause > longestDialPause, "DialerRetryTimeout", s.dialPause, "100ms",
		"when Redis is back, connections wait for the next attempt")
}

func inTime(d time.Duration) bool { return d > 0 && d <= longestReadTimeout }

func limitText(d time.Duration) string {
	if d == 0 {
		return "none"
	}
	return d.String()
}

func (s *Settings) poolRisks(l *riskList, wait time.Duration) {
	l.add(s.pool < s.leastPool, "PoolSize", s.pool, fmt.Sprintf("at least %d", s.leastPool),
		"a node makes that many calls at once; more wait for a connection")
	l.add(s.active > 0 && s.active < s.leastPool, "MaxActiveConns", s.active, fmt.Sprintf("0, or at least %d", s.leastPool),
		"a node makes that many calls at once; more fail")
	l.add(s.poolTimeout < wait, "PoolTimeout", s.poolTimeout, "unset",
		"calls fail that would have got a connection in time")
}

func (s *Settings) kindRisks(l *riskList) {
	l.add(s.limiter, "Limiter", "set", "unset",
		"a call that it stops counts as lost, and slices lapse; the node has a breaker of its own")
	l.add(s.noRedirects, "MaxRedirects", 0, "3",
		"while slots move between servers, their keys follow the failure policy")
	l.add(s.replicas != "", s.replicas, true, "false",
		"replicas lag: nodes learn late that a key needs the tokens they hold")
	l.add(s.shardCheck > 0 && s.shardCheck < shortestShardCheck, "HeartbeatFrequency", s.shardCheck, "500ms",
		"three checks that fail move a shard's keys, each to one burst more")
}

// Warn logs each risky setting, once.
func (s *Settings) Warn(logger *slog.Logger, storeTimeout time.Duration) {
	for _, r := range s.risks(storeTimeout) {
		logger.Warn("hybrid: a risky setting of the Redis client",
			"field", r.field, "value", r.value, "recommended", r.recommended, "why", r.why)
	}
}
