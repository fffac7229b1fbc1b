-- Settles a batch of accounts: drains each, books what a node reports of it, admits, grants.
--
-- KEYS[i]  the account; absent is the empty account, else "used ts lent0 lent1":
--          used   tokens taken and not drained yet, '%.17g', >= lent0 + lent1
--          ts     microseconds of the last write
--          lent*  tokens out on lease, by parity of the 60 s epoch they were lent in
-- ARGV     per account, in the order of KEYS, every number as decimal text:
--          window    microseconds, aligned to the Unix epoch; 0 = token bucket
--          B r       burst (tokens), rate (tokens per microsecond; unused by a window)
--          epoch window   tag of the reported slice; epoch 0 = reports no slice
--          spent returned held   of that slice, tokens
--          charged   used without asking, a refund is negative; debt ends at 2B
--          fallback  admitted while the store was away; charged up to B
--          want least unit divisor   wish for the slice; want 0 = none
--          n         runs of needs, then n times: cost count
-- Reply    per account {flags, now, clock, used, lent, granted, epoch, window, life, admitted per run...}
--          flags: 1 = the reported slice has come to its end: it was too old and ignored, or what it held
--          counts as spent; 2 = the stored state was unreadable and replaced, or was ahead of the clock and
--          made of now; or, with nothing done to this account: {-1, error text}.
--
-- The script is total: no argument and no stored value raises an error, so that one poisoned account
-- cannot stop its neighbours halfway. Numbers print as '%.0f' and '%.17g' because tostring keeps 14 digits.

local E = 60000000              -- lease epoch, microseconds; part of the format
local INT = 9007199254740992    -- 2^53, the last of the exact integers
local SUM = 1000000000000000000 -- no account holds more
local MAX_SLICE = 4294967295    -- what a node's cell can hold
local MAX_TTL = 9000000000000   -- ms; above it, servers overflow
local AHEAD = 2 * E             -- microseconds that an account may be ahead of the clock
local KEYS, ARGV, call = KEYS, ARGV, redis.pcall
local floor, ceil, min, max = math.floor, math.ceil, math.min, math.max
local format, match, tonumber = string.format, string.match, tonumber

local time = call('TIME')
if time.err then return time end
local clock = tonumber(time[1]) * 1000000 + tonumber(time[2])

-- The question at hand.
local window, burst, rate, tag, tagWindow, spent, returned, held, charged, fallback, want, least, unit, divisor
local need = {}                 -- cost, count, cost, count, ...
-- The account at hand.
local found, flags, used, ts    -- whether the key exists; reply flags; as stored
local lent, out = {}, 0         -- by parity of the epoch 0, 1; their sum
local epoch, index              -- of ts: the lease epoch, and the window or 0
local beyond                    -- of what is used: what a higher limit used
local ahead                     -- how far it was ahead of the clock, if that is far
local wasUsed, wasTs, wasLife   -- as found: used, ts, and how long the leases had to live

-- Whole number in lo..hi, or nil.
local function int(s, lo, hi)
  if s == '0' and lo <= 0 then return 0 end
  local v = tonumber(s)
  if v and v >= lo and v <= hi and v % 1 == 0 then return v end
end

-- Real number in lo..hi, or nil.
local function real(s, lo, hi)
  if s == '0' and lo <= 0 then return 0 end
  local v = tonumber(s)
  if v and v >= lo and v <= hi then return v end
end

-- Reads the question at ARGV[i]. Returns whether it is sound. What nobody looks at is not read.
local function ask(i)
  window, burst, rate = int(ARGV[i], 0, INT), int(ARGV[i + 1], 1, INT), real(ARGV[i + 2], 1e-300, INT)
  tag, tagWindow = int(ARGV[i + 3], 0, INT), int(ARGV[i + 4], 0, INT)
  charged, fallback, want = real(ARGV[i + 8], -INT, INT), real(ARGV[i + 9], 0, INT), int(ARGV[i + 10], 0, INT)
  if not (window and burst and rate and tag and tagWindow and charged and fallback and want) then return false end
  if tag > 0 then
    spent, returned, held = int(ARGV[i + 5], 0, INT), int(ARGV[i + 6], 0, INT), int(ARGV[i + 7], 0, MAX_SLICE)
    if not (spent and returned and held) then return false end
  end
  if want > 0 then
    least, unit, divisor = int(ARGV[i + 11], 1, INT), int(ARGV[i + 12], 1, INT), int(ARGV[i + 13], 1, INT)
    if not (least and unit and divisor) then return false end
  end
  return true
end

-- Reads n runs of needs from ARGV[i] on. Returns whether they are sound.
local function askNeeds(i, n)
  for j = 1, 2 * n do
    need[j] = int(ARGV[i + j - 1], 1, INT)
    if not need[j] then return false end
  end
  return true
end

-- Microseconds until the leases of the account end.
local function leaseLife()
  if out == 0 then return 0 end
  return (floor(ts / E) + 2) * E - ts
end

-- Reads the account. An unreadable state counts as lost. One that is ahead of the clock would stand still until the
-- clock is there: it is taken to be of now, without the leases of a time that is still to come. Returns an error text
-- if the key cannot be read.
local function read(key)
  local v = call('GET', key)
  found, flags, used, ts, out, ahead = false, 0, 0, clock, 0, 0
  lent[0], lent[1] = 0, 0
  if not v then return end
  if type(v) == 'table' then return v.err or 'ERR unexpected reply' end
  found = true
  local u, t, l0, l1 = match(v, '^(%d[%d.e+-]*) (%d+) (%d+) (%d+)$')
  u, t, l0, l1 = tonumber(u), tonumber(t), tonumber(l0), tonumber(l1)
  if not (u and t and l0 and l1 and u <= SUM and l0 + l1 <= u and t <= INT - 3 * E) then
    flags = 2
  elseif t > clock + AHEAD then
    flags, ahead, used = 2, t - clock, u - (l0 + l1)
  else
    used, ts, out = u, t, l0 + l1
    lent[0], lent[1] = l0, l1
  end
end

-- What a higher limit used: more than 2B is no debt. By the limit at hand the account was just full when it was
-- last written, and nobody is denied for more. It stays stored, for those who still have the higher limit. Once it
-- has drained to 2B it is as good as a debt, and drains like one.
local function excess()
  if window > 0 or used <= 2 * burst then return 0 end
  return used - max(out, burst)
end

-- Drains the account up to now. At the end of epoch e the leases of e-1 are forgotten, but only after draining
-- up to that end: drained over the whole gap without them, the account would refill while they were good.
-- Without them, more may be beyond the limit. After two ends nothing is lent, so no gap needs more steps.
local function drain(now, r)
  local first = floor(ts / E) + 1
  for e = first, min(floor(now / E), first + 1) do
    used = max(out, used - r * (e * E - ts))
    ts = e * E
    lent[e % 2] = 0
    out = lent[0] + lent[1]
    beyond = max(beyond, excess())
  end
  used = max(out, used - r * (now - ts))
  ts = now
end

-- Brings the account to the present. The clock of an account never steps back.
local function advance()
  local now = max(clock, ts)
  wasUsed, wasTs, wasLife, beyond = used, ts, leaseLife(), excess()
  epoch, index = floor(now / E), 0
  if window == 0 then return drain(now, rate) end
  index = floor(now / window)
  if floor(ts / window) == index then return drain(now, 0) end
  used, ts, out = 0, now, 0
  lent[0], lent[1] = 0, 0
end

-- Books the reported slice. What its lease does not cover (forgotten, lost with the data, lent twice) is charged.
-- Held tokens of which more are lent than before need room, like any grant: without it they count as spent, and the
-- slice ends. Returns whether there was anything to book.
local function report()
  if tag < epoch - 1 or (window > 0 and tagWindow ~= index) then
    flags = flags + 1
    return false
  end
  local x, covered = spent + returned + held, 0
  if x == 0 then return false end
  if tag <= epoch then
    covered = min(x, lent[tag % 2])
    lent[tag % 2] = lent[tag % 2] - covered
  end
  local u = used + (x - covered) - returned
  if held > covered and u > burst then
    flags = flags + 1
  else
    lent[epoch % 2] = lent[epoch % 2] + held
  end
  out = lent[0] + lent[1]
  used = max(out, u)
  return true
end

-- Charges what was admitted without asking. Returns whether there was anything to charge.
local function charge()
  if charged == 0 and fallback == 0 then return false end
  if window > 0 and tagWindow ~= 0 and tagWindow ~= index then return false end -- another window's
  local u = max(out, used + charged)
  if charged > 0 then u = min(u, max(used, 2 * burst)) end
  if fallback > 0 then u = max(u, min(burst, u + fallback)) end
  used = u
  return true
end

-- Admits of each run as many as fit, into reply. Returns how many, and whether any was refused.
local function admit(n, reply)
  local admitted, refused = 0, false
  for j = 1, n do
    local cost, count, free = need[2 * j - 1], need[2 * j], burst - used
    local k = max(0, min(count, floor(free / cost)))
    -- The quotient may have been rounded up, and near 2^53 the sum loses what is too much. Neither is ever too low.
    while k > 0 and (k * cost > free or used + k * cost > burst) do k = k - 1 end
    used = used + k * cost
    reply[9 + j] = k
    admitted = admitted + k
    refused = refused or k < count
  end
  return admitted, refused
end

-- Lends up to a share of what is free, in whole units. Returns how much.
local function grant()
  local g = min(want, MAX_SLICE, floor((burst - used) / divisor))
  if g <= 0 then return 0 end
  g = g - g % unit
  if g < least then return 0 end
  used, out = used + g, out + g
  lent[epoch % 2] = lent[epoch % 2] + g
  return g
end

-- How long the account takes to drain, in microseconds. Of what a higher limit used, more than 2B, the writer does
-- not know the rate; by its own, it could take ages. But it knows how long the key had to live, without its leases,
-- when it was last written: no less was used then than now, but for what is added.
local function drains(left)
  if used <= 2 * burst then return used / rate end
  local had = 0
  if left >= 0 then had = 1000 * (left + 1) + ts - wasTs - wasLife end
  return min(used / rate, max(2 * burst / rate, had + max(0, used - wasUsed) / rate))
end

-- Milliseconds that the key has to live: until it is empty by the limit at hand and holds no lease, or its window
-- ends. While the clock is behind the account, that much longer. A writer with a lower limit (used > B) never
-- shortens it; of an account that was far ahead, the key's time has begun then.
local function ttl(key)
  local us, left = ts - clock, -1
  if used > burst then
    left = call('PTTL', key)
    left = type(left) == 'number' and left - floor(ahead / 1000) or -1
  end
  if window > 0 then
    us = us + (index + 1) * window - ts
  else
    us = us + drains(left)
    if out > 0 then us = us + (epoch + 2) * E - ts end
  end
  return format('%.0f', max(1, left, min(MAX_TTL, ceil(us / 1000))))
end

-- Writes the account. An empty one is deleted: that forgets its ts, which only matters after the clock stepped
-- back, and a bucket that is full at ts may as well be full at the clock. Returns an error text if refused.
local function write(key, text)
  local r
  if used > 0 then
    r = call('SET', key, text .. format(' %.0f %.0f %.0f', ts, lent[0], lent[1]), 'PX', ttl(key))
  elseif found then
    r = call('DEL', key)
  end
  if type(r) == 'table' then return r.err end
end

-- Settles one account by the question at hand, which has n runs of needs.
local function settle(key, n)
  local err = read(key)
  if err then return {-1, err} end
  advance()
  local life = (epoch + 2) * E - ts
  if window > 0 then life = min(life, (index + 1) * window - ts) end
  local reply = {0, ts, clock, '0', 0, 0, epoch, index, life}
  local dirty = tag > 0 and report() or ahead > 0
  dirty = charge() or dirty
  beyond = min(beyond, used - out)
  used = used - beyond
  local admitted, refused = admit(n, reply)
  local granted = 0
  if want > 0 and not refused then granted = grant() end
  -- What changes nothing writes nothing: a flood of refusals costs no writes, and leaves no rounding behind.
  if dirty or admitted > 0 or granted > 0 then
    used = used + beyond
    err = write(key, format('%.17g', used))
    if err then return {-1, err} end
    used = used - excess() -- as the next reader will see it
  end
  reply[1], reply[4], reply[5], reply[6] = flags, format('%.17g', used), out, granted
  return reply
end

local replies, at = {}, 1
for i = 1, #KEYS do
  local n = int(ARGV[at + 14], 0, 64)
  if n and ask(at) and askNeeds(at + 15, n) then
    replies[i] = settle(KEYS[i], n)
  else
    replies[i] = {-1, 'ERR bad argument'}
  end
  at = n and at + 15 + 2 * n or #ARGV + 1 -- with n unreadable, nobody knows where the next one starts
end
return replies
