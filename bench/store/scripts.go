package store

import (
	"context"
	"fmt"
	"strings"

	"github.com/redis/go-redis/v9"

	"github.com/hybridlimit/hybrid/exact"
	"github.com/hybridlimit/hybrid/slice"
)

// Scripts that do less than an account needs.
const (
	// nothing is what a call costs, and the way of its arguments into Lua.
	nothing = `
for i = 1, #KEYS do local key, question = KEYS[i], ARGV[i] end
return #KEYS`
	// getAndSet is besides what Redis takes to read an account and to write it.
	getAndSet = `
local call = redis.pcall
for i = 1, #KEYS do
  call('GET', KEYS[i])
  call('SET', KEYS[i], '4711.0123456789012 1795980557158196 40 0', 'PX', '3600000')
end
return #KEYS`
)

// settleSource returns the script that package exact sends, as the server sees it.
func settleSource(ctx context.Context, addr string) (string, error) {
	seen := &recorder{}
	rdb := redis.NewClient(&redis.Options{Addr: addr})
	defer rdb.Close()
	rdb.AddHook(seen)
	s, err := exact.New(rdb, nil)
	if err != nil {
		return "", err
	}
	e := &slice.Settle{Account: "probe", Rule: wide}
	if s.Settle(ctx, []*slice.Settle{e}); e.Err != nil {
		return "", e.Err
	}
	if seen.source == "" {
		return "", fmt.Errorf("store: the server has the script already: it is not a fresh one")
	}
	return seen.source, nil
}

// edit changes a script in one place.
type edit struct{ old, new string }

// variant is the script with some edits: the same arithmetic, otherwise stored or written.
type variant struct {
	name  string
	edits []edit
}

const settledText = "        problem = call('SET', key, text .. stamp .. lent, 'PX', format('%.0f', ms)).err\n"

var (
	asHash = variant{"a hash of four fields", []edit{
		{"call('GET', key)", "call('HMGET', key, 'used', 'ts', 'lent0', 'lent1')"},
		{"    if found then\n      if type(found) == 'table' then\n        problem = found.err or 'ERR unexpected reply'\n        break\n      end\n",
			"    if found.err then\n      problem = found.err\n      break\n    end\n    found = found[1] and found\n    if found then\n"},
		{"match(found, STATE)", "found[1], found[2], found[3], found[4]"},
		{"        local lent = out > 0 and format(' %.0f %.0f', lent0, lent1) or ' 0 0'\n", ""},
		{"        local stamp = ts == clock and present or format(' %.0f', ts)\n", "        local stamp = ts == clock and present or format('%.0f', ts)\n"},
		{"' ' .. time[1] .. time[2] or format(' %.0f', clock)", "time[1] .. time[2] or format('%.0f', clock)"},
		{settledText, "        local done = call('HSET', key, 'used', text, 'ts', stamp, 'lent0', format('%.0f', lent0), 'lent1', format('%.0f', lent1))\n" +
			"        problem = type(done) == 'table' and done.err or nil\n" +
			"        call('PEXPIRE', key, format('%.0f', ms))\n"},
	}}
	asDeadline = variant{"the string, PXAT for PX", []edit{
		{settledText, strings.Replace(settledText, "'PX', format('%.0f', ms)", "'PXAT', format('%.0f', ms + (clock - clock % 1000) / 1000)", 1)},
	}}
	readAtOnce = variant{"the string, one MGET for all", []edit{
		{"local need, took =", "local values = count > 1 and call('MGET', (table.unpack or unpack)(KEYS)) or {}\nlocal need, took ="},
		{"call('GET', key)", "values[i] or call('GET', key)"},
	}}
)

// of applies the edits, each of which has its place once.
func (v variant) of(source string) (string, error) {
	for _, e := range v.edits {
		if n := strings.Count(source, e.old); n != 1 {
			return "", fmt.Errorf("store: %s: the script has %d places %q", v.name, n, e.old)
		}
		source = strings.Replace(source, e.old, e.new, 1)
	}
	return source, nil
}
