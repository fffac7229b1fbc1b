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
--          flags: 1 = the reported slice was too old and ignored, 2 = the stored state was unreadable
--          and replaced; or, with nothing done to this account: {-1, error text}.
--
-- The script is total: no argument and no stored value raises an error, so that one poisoned account
-- cannot stop its neighbours halfway. Numbers print as '%.0f' and '%.17g' because tostring keeps 14 digits.

local E = 60000000             -- lease epoch, microseconds; part of the format
local INT = 9007199254740992   -- 2^53, the last of the exact integers
local SUM = 1000000000000000000 -- no account holds more
local MAX_SLICE = 4294967295   -- what a node's cell can hold
local MAX_TTL = 9000000000000  -- ms; above it, servers overflow
local floor, ceil, min, max = math.floor, math.ceil, math.min, math.max
local format, match = string.format, string.match
local ZERO = '0'

local time = redis.pcall('TIME')
if time.err then return time end
local clock = tonumber(time[1]) * 1000000 + tonumber(time[2])

local a, q = {}, {}            -- the account and the question at hand; reused

-- Whole number in lo..hi, or nil.
local function int(s, lo, hi)
  if s == ZERO and lo <= 0 then return 0 end
  local v = tonumber(s)
  if v and v >= lo and v <= hi and v % 1 == 0 then return v end
end

-- Real number in lo..hi, or nil.
local function real(s, lo, hi)
  if s == ZERO and lo <= 0 then return 0 end
  local v = tonumber(s)
  if v and v >= lo and v <= hi then return v end
end

-- Reads the question that starts at ARGV[i]. Returns whether it is sound.
local function ask(i)
  q.window, q.burst, q.rate = int(ARGV[i], 0, INT), int(ARGV[i + 1], 1, INT), real(ARGV[i + 2], 1e-300, INT)
  q.tag, q.tagWindow = int(ARGV[i + 3], 0, INT), int(ARGV[i + 4], 0, INT)
  q.spent, q.returned, q.held = int(ARGV[i + 5], 0, INT), int(ARGV[i + 6], 0, INT), int(ARGV[i + 7], 0, INT)
  q.charged, q.fallback = real(ARGV[i + 8], -INT, INT), real(ARGV[i + 9], 0, INT)
  q.want = int(ARGV[i + 10], 0, INT)
  if q.want == 0 then return q.window and q.burst and q.rate and q.tag and q.tagWindow
    and q.spent and q.returned and q.held and q.charged and q.fallback end
  q.least, q.unit, q.divisor = int(ARGV[i + 11], 1, INT), int(ARGV[i + 12], 1, INT), int(ARGV[i + 13], 1, INT)
  return q.window and q.burst and q.rate and q.tag and q.tagWindow and q.spent and q.returned and q.held
    and q.charged and q.fallback and q.want and q.least and q.unit and q.divisor
end

-- Reads n runs of needs from ARGV[i] on. Returns whether they are sound.
local function askNeeds(i, n)
  for j = 1, 2 * n do
    q[j] = int(ARGV[i + j - 1], 1, INT)
    if not q[j] then return false end
  end
  return true
end

-- Reads the account. An unreadable state counts as lost. Returns an error text if the key cannot be read.
local function read(key)
  local v = redis.pcall('GET', key)
  a.found, a.flags, a.used, a.ts, a[0], a[1] = false, 0, 0, clock, 0, 0
  if not v then return end
  if type(v) == 'table' then return v.err or 'ERR unexpected reply' end
  a.found = true
  local used, ts, l0, l1 = match(v, '^([%d.e+-]+) (%d+) (%d+) (%d+)$')
  used, ts, l0, l1 = tonumber(used), tonumber(ts), tonumber(l0), tonumber(l1)
  if used and used <= SUM and l0 + l1 <= used and ts <= INT - 3 * E then
    a.used, a.ts, a[0], a[1] = used, ts, l0, l1
  else
    a.flags = 2
  end
end

-- Drains the account up to now. At the end of epoch e the leases of e-1 are forgotten, but only after draining
-- up to that end: drained over the whole gap without them, the account would refill while they were good.
-- After two ends nothing is lent, so no gap needs more steps.
local function drain(now, rate)
  local epoch = floor(a.ts / E)
  for e = epoch + 1, min(floor(now / E), epoch + 2) do
    a.used = max(a[0] + a[1], a.used - rate * (e * E - a.ts))
    a.ts = e * E
    a[e % 2] = 0
  end
  a.used = max(a[0] + a[1], a.used - rate * (now - a.ts))
  a.ts = now
end

-- Brings the account to now. The clock of an account never steps back.
local function advance()
  local now = max(clock, a.ts)
  a.epoch, a.window = floor(now / E), 0
  if q.window == 0 then return drain(now, q.rate) end
  a.window = floor(now / q.window)
  if floor(a.ts / q.window) == a.window then return drain(now, 0) end
  a.used, a.ts, a[0], a[1] = 0, now, 0, 0
end

-- Books the reported slice. What its lease does not cover (forgotten, lost with the data, lent twice) is charged.
local function report()
  if q.tag < a.epoch - 1 or (q.window > 0 and q.tagWindow ~= a.window) then
    a.flags = a.flags + 1
    return false
  end
  local x, covered = q.spent + q.returned + q.held, 0
  if x == 0 then return false end
  if q.tag <= a.epoch then
    local slot = q.tag % 2
    covered = min(x, a[slot])
    a[slot] = a[slot] - covered
  end
  local slot = a.epoch % 2
  a[slot] = a[slot] + q.held
  a.used = max(a[0] + a[1], a.used + (x - covered) - q.returned)
  return true
end

-- Charges what was admitted without asking.
local function charge()
  if q.charged == 0 and q.fallback == 0 then return false end
  if q.window > 0 and q.tagWindow ~= 0 and q.tagWindow ~= a.window then return false end -- another window's
  local used = max(a[0] + a[1], a.used + q.charged)
  if q.charged > 0 then used = min(used, max(a.used, 2 * q.burst)) end
  if q.fallback > 0 then used = max(used, min(q.burst, used + q.fallback)) end
  a.used = used
  return true
end

-- Admits of each run as many as fit, into reply. Returns how many, and whether any was refused.
local function admit(n, reply)
  local admitted, refused = 0, false
  for j = 1, n do
    local cost, count, used = q[2 * j - 1], q[2 * j], a.used
    local k = max(0, min(count, floor((q.burst - used) / cost)))
    if k > 0 and used + k * cost > q.burst then -- the quotient was rounded up
      k = k - 1
    elseif k < count and used + (k + 1) * cost <= q.burst then -- or down
      k = k + 1
    end
    a.used = used + k * cost
    reply[9 + j] = k
    admitted = admitted + k
    refused = refused or k < count
  end
  return admitted, refused
end

-- Lends up to a share of what is free, in whole units.
local function grant()
  local g = min(q.want, MAX_SLICE, floor((q.burst - a.used) / q.divisor))
  if g <= 0 then return 0 end
  g = g - g % q.unit
  if g < q.least then return 0 end
  local slot = a.epoch % 2
  a.used, a[slot] = a.used + g, a[slot] + g
  return g
end

-- Milliseconds that the key has to live: until it is empty by the limit at hand, or its window ends. While the
-- clock is behind the account, that much longer. A writer with a lower limit (used > B) never shortens it.
local function ttl(key)
  local us = a.ts - clock
  if q.window > 0 then
    us = us + (a.window + 1) * q.window - a.ts
  else
    us = us + min(a.used, 2 * q.burst) / q.rate
    if a[0] + a[1] > 0 then us = us + (a.epoch + 2) * E - a.ts end
  end
  local ms = max(1, min(MAX_TTL, ceil(us / 1000)))
  if a.used > q.burst then
    local left = redis.pcall('PTTL', key)
    if type(left) == 'number' then ms = max(ms, left) end
  end
  return format('%.0f', ms)
end

-- Writes the account. An empty one is deleted: that forgets its ts, which only matters after the clock stepped
-- back, and a bucket that is full at ts may as well be full at the clock. Returns an error text if refused.
local function write(key, used)
  local r
  if a.used > 0 then
    r = redis.pcall('SET', key, used .. format(' %.0f %.0f %.0f', a.ts, a[0], a[1]), 'PX', ttl(key))
  elseif a.found then
    r = redis.pcall('DEL', key)
  end
  if type(r) == 'table' then return r.err end
end

-- Settles the account of the question at hand.
local function settle(key, n)
  local err = read(key)
  if err then return {-1, err} end
  advance()
  local reply = {0, a.ts, clock, ZERO, 0, 0, a.epoch, a.window, 0}
  local dirty = q.tag > 0 and report()
  dirty = charge() or dirty
  local admitted, refused = admit(n, reply)
  local granted = 0
  if q.want > 0 and not refused then granted = grant() end
  local used = format('%.17g', a.used)
  -- What changes nothing writes nothing: a flood of refusals costs no writes, and leaves no rounding behind.
  if dirty or admitted > 0 or granted > 0 then
    err = write(key, used)
    if err then return {-1, err} end
  end
  local life = (a.epoch + 2) * E - a.ts
  if q.window > 0 then life = min(life, (a.window + 1) * q.window - a.ts) end
  reply[1], reply[4], reply[5], reply[6], reply[9] = a.flags, used, a[0] + a[1], granted, life
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
