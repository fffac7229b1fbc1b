-- Registers one member of a limiter's fleet, or keeps it registered.
--
-- KEYS[1]  sorted set: member -> Redis time of its last heartbeat, ms
-- ARGV     member, ttl in ms: who was silent for that long has left
-- Reply    {joined, member...}: joined is 1 if the member was not registered

local key, member, ttl = KEYS[1], ARGV[1], tonumber(ARGV[2])
if not (member and ttl and ttl >= 1 and ttl <= 1000000000) then return redis.error_reply('ERR bad argument') end
local time = redis.call('TIME')
local now = tonumber(time[1]) * 1000 + math.floor(tonumber(time[2]) / 1000)

local last = tonumber(redis.call('ZSCORE', key, member))
local joined = last and last > now - ttl and 0 or 1

-- The first write needs memory: a script that has written already is let through by a server that is full, and
-- the heartbeat would say that all is well.
redis.call('ZADD', key, string.format('%.0f', now), member)
-- After the clock stepped back, members seem to come from the future: they are alive, and have to age.
for _, m in ipairs(redis.call('ZRANGEBYSCORE', key, string.format('(%.0f', now), '+inf')) do
  redis.call('ZADD', key, string.format('%.0f', now), m)
end
redis.call('ZREMRANGEBYSCORE', key, '-inf', string.format('%.0f', now - ttl))
redis.call('PEXPIRE', key, string.format('%.0f', 2 * ttl))
local reply = redis.call('ZRANGE', key, 0, -1)
table.insert(reply, 1, joined)
return reply
