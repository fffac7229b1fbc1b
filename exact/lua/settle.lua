-- Settles a batch of accounts: drains each, books what a node reports of it, admits, grants.
--
-- KEYS[i]  the account; absent is the empty account, else "used ts lent0 lent1":
--          used   tokens taken and not drained yet, '%.17g', >= lent0 + lent1
--          ts     microseconds of the last write
--          lent*  tokens out on lease, by parity of the 60 s epoch they were lent in
-- ARGV[i]  the question about it: numbers in decimal, one space between two
--          terms     which of the terms it goes by; j stands for ARGV[#KEYS + j]
--          spent returned held   of the reported slice, tokens
--          want      wish for the slice; 0 = none
--          charged   used without asking, a refund is negative; debt ends at 2B. "c@n@t" also undoes
--                    admissions of n tokens, of which the first was at t (microseconds of this clock): what
--                    has drained since is not given back, or it would be there twice
--          fallback  admitted while the store was away; charged up to B
--          cost count   of each run of needs, at most 64 times. Count 0 is one request that may wait: where it
--                       does not fit, its cost is lent like a slice while used + cost <= 2B, of a bucket, and
--                       may be spent when used has drained to B
-- ARGV[#KEYS + j]   terms, which many accounts of a batch share, as numbers too
--          window    microseconds, aligned to the Unix epoch; 0 = token bucket
--          B r       burst (tokens), rate (tokens per microsecond; unused by a window)
--          epoch window   tag of the reported slice; epoch 0 = reports no slice
--          least unit divisor   of a grant; unused where nothing is wanted
-- Reply    clock, then account by account: flags, ahead, used, lent, granted, admitted per run...
--          ahead: how far the account is ahead of the clock, microseconds
--          flags: 1 = the reported slice has come to its end: it was too old and ignored, or what it held
--          counts as spent; 2 = the stored state was unreadable and replaced, or was ahead of the clock and
--          made of now; or, with nothing done to this account: -1, error text.
--
-- The script is total: no argument and no stored value raises an error, so that one poisoned account
-- cannot stop its neighbours halfway. Numbers print as '%.0f' and '%.17g' because tostring keeps 14 digits.
--
-- It is one loop without functions, and says x - x % 1 for floor(x), because Redis serves nobody else meanwhile: with
-- the loop's body alone made a function, a batch takes 8 % longer, and a lone account 15 %.

local E = 60000000              -- lease epoch, microseconds; part of the format
local INT = 9007199254740992    -- 2^53, the last of the exact integers
local SUM = 1000000000000000000 -- no account holds more
local MAX_SLICE = 4294967295    -- what a node's cell can hold
local MAX_RUNS = 64
local MAX_TTL = 9000000000000   -- ms; above it, servers overflow
local AHEAD = 2 * E             -- microseconds that an account may be ahead of the clock
local NO_DEBT = math.huge       -- a window has none
local KEYS, ARGV, call, count = KEYS, ARGV, redis.pcall, #KEYS
local format, match, tonumber, type = string.format, string.match, tonumber, type

-- A text of digits becomes a number by + 0, which costs less than tonumber. What is too long for an exact integer
-- fails the check of its range.
local QUESTION = '^(%d+) (%d+) (%d+) (%d+) (%d+) (%S+) (%S+)()'
local NEED = '^ (%d+) (%d+)()'
local UNDONE = '^(%S+)@(%S+)@(%d+)$'
local TERMS = '^(%d+) (%d+) (%S+) (%d+) (%d+) (%d+) (%d+) (%d+)$'
local STATE = '^(%d[%d.e+-]*) (%d+) (%d+) (%d+)$'

local time = call('TIME')
if time.err then return time end
local clock = time[1] * 1000000 + time[2]
local present = #time[2] == 6 and ' ' .. time[1] .. time[2] or format(' %.0f', clock) -- as a text, mostly at hand

-- The terms read last: many questions go by the same.
local known, sound, lends
local window, burst, rate, tag, tagWindow, least, unit, divisor, debt
local need, took = {nil, nil}, {nil} -- cost, count, cost, count, ...; how many of each run were admitted
local reply, n = {clock, nil, nil, nil, nil, nil, nil}, 1 -- has room for a lone account

for i = 1, count do
  local key, problem = KEYS[i], 'ERR bad argument'
  repeat -- once: a break leaves an account with its problem

    -- Read the question. What nobody looks at is not checked.
    local question = ARGV[i] or ''
    local terms, spent, returned, held, want, charged, fallback, at = match(question, QUESTION)
    if not terms then break end
    if terms ~= known then
      local w, b, r, e, tw, l, u, d = match(ARGV[count + terms] or '', TERMS)
      known, sound = terms, false
      if w then
        window, burst, rate, tag, tagWindow = w + 0, b + 0, tonumber(r) or 0, e + 0, tw + 0
        least, unit, divisor = l + 0, u + 0, d + 0
        sound = window <= INT and burst >= 1 and burst <= INT and rate >= 1e-300 and rate <= INT and tag <= INT and tagWindow <= INT
        lends = least >= 1 and least <= INT and unit >= 1 and unit <= INT and divisor >= 1 and divisor <= INT
        debt = window > 0 and NO_DEBT or 2 * burst
      end
    end
    if not sound then break end
    want = want + 0
    local undone, since
    if charged == '0' then
      charged = 0
    else
      local number = tonumber(charged)
      if not number then
        charged, undone, since = match(charged, UNDONE)
        undone, since = tonumber(undone or ''), since and since + 0
        number = tonumber(charged or '')
        if not (undone and undone >= 0 and undone <= INT and since <= INT) then break end
      end
      charged = number
    end
    fallback = fallback == '0' and 0 or tonumber(fallback)
    if want > INT or want > 0 and not lends then break end
    if not (charged and charged >= -INT and charged <= INT and fallback and fallback >= 0 and fallback <= INT) then break end
    if tag > 0 then
      spent, returned, held = spent + 0, returned + 0, held + 0
      if spent > INT or returned > INT or held > MAX_SLICE then break end
    end
    local runs = 0
    while at and at <= #question do
      local c, k
      c, k, at = match(question, NEED, at)
      if at then
        c, k = c + 0, k + 0
        if c < 1 or c > INT or k < 0 or k > INT or runs == MAX_RUNS then
          at = nil
        else
          need[2 * runs + 1], need[2 * runs + 2] = c, k
          runs = runs + 1
        end
      end
    end
    if not at then break end

    -- Read the account. An unreadable state counts as lost. One that is ahead of the clock would stand still until
    -- the clock is there: it is taken to be of now, without the leases of a time that is still to come.
    local found = call('GET', key)
    local flags, used, ts, lent0, lent1, ahead = 0, 0, clock, 0, 0, 0
    if found then
      if type(found) == 'table' then
        problem = found.err or 'ERR unexpected reply'
        break
      end
      local u, t, l0, l1 = match(found, STATE)
      u = u and tonumber(u)
      if u then t, l0, l1 = t + 0, l0 + 0, l1 + 0 end
      if not u or u > SUM or l0 + l1 > u or t > INT - 3 * E then
        flags = 2
      elseif t > clock + AHEAD then
        flags, ahead, used = 2, t - clock, u - (l0 + l1)
      else
        used, ts, lent0, lent1 = u, t, l0, l1
      end
    end
    local out = lent0 + lent1
    local wasUsed, wasTs, wasOut = used, ts, out -- as found

    -- Bring it to the present, without stepping back. A new window starts empty.
    local now = ts > clock and ts or clock
    local epoch = now / E
    epoch = epoch - epoch % 1
    local r, index = rate, 0
    if window > 0 then
      local was = ts / window
      index = now / window
      index = index - index % 1
      if was - was % 1 ~= index then
        used, ts, lent0, lent1, out = 0, now, 0, 0, 0
      end
      r = 0
    end

    -- What a higher limit used is beyond: more than 2B is no debt. By the limit at hand the account was just full when
    -- it was last written, and nobody is denied for more. It stays stored, for those who still have the higher limit.
    -- Once it has drained to 2B it is as good as a debt, and drains like one.
    local beyond = 0
    if used > debt then beyond = used - (burst > out and burst or out) end

    -- Drain. At the end of epoch e the leases of e-1 are forgotten, but only after draining up to that end: drained
    -- over the whole gap without them, the account would refill while they were good. Without them, more may be beyond
    -- the limit. After two ends nothing is lent, so no gap needs more steps.
    local first = ts / E
    first = first - first % 1 + 1
    for e = first, epoch > first and first + 1 or epoch do
      local u = used - r * (e * E - ts)
      used = u > out and u or out
      ts = e * E
      if e % 2 == 0 then lent0 = 0 else lent1 = 0 end
      out = lent0 + lent1
      if used > debt then
        local b = used - (burst > out and burst or out)
        if b > beyond then beyond = b end
      end
    end
    local u = used - r * (now - ts)
    used = u > out and u or out
    ts = now

    -- Book the reported slice. What its lease does not cover (forgotten, lost with the data, lent twice) is charged.
    -- Held tokens of which more are lent than before need room, like any grant: without it they count as spent, and
    -- the slice ends.
    local dirty = ahead > 0
    if tag == 0 then -- there is none
    elseif tag < epoch - 1 or window > 0 and tagWindow ~= index then
      flags = flags + 1
    else
      local x, covered = spent + returned + held, 0
      if x > 0 then
        dirty = true
        if tag <= epoch then
          covered = tag % 2 == 0 and lent0 or lent1
          if x < covered then covered = x end
          if tag % 2 == 0 then lent0 = lent0 - covered else lent1 = lent1 - covered end
        end
        u = used + (x - covered) - returned
        if held > covered and u > burst then
          flags = flags + 1
        elseif epoch % 2 == 0 then
          lent0 = lent0 + held
        else
          lent1 = lent1 + held
        end
        out = lent0 + lent1
        used = u > out and u or out
      end
    end

    -- Undo what another limit denied. The account has drained meanwhile, by r at most in all. What another window
    -- admitted went with it; if it is not said which one it was, that is what is safe to believe.
    if undone and (window == 0 or tagWindow == index) then
      undone = now > since and undone - r * (now - since) or undone
      if undone > 0 then charged = charged - undone end
    end

    -- Charge what was admitted without asking, unless that was in another window.
    if (charged ~= 0 or fallback > 0) and (window == 0 or tagWindow == 0 or tagWindow == index) then
      dirty = true
      u = used + charged
      if out >= u then u = out end
      if charged > 0 then
        local most = 2 * burst > used and 2 * burst or used
        if u > most then u = most end
      end
      if fallback > 0 and u < burst then
        u = u + fallback < burst and u + fallback or burst
      end
      used = u
    end
    if beyond > 0 then
      if used - out < beyond then beyond = used - out end
      used = used - beyond
    end

    -- Admit of each run as many as fit. A refused need is not charged, and a smaller one behind it may fit.
    local admitted, refused = 0, false
    for j = 1, runs do
      local c, most, limit, waits = need[2 * j - 1], need[2 * j], burst, false
      if most == 0 then -- it may wait, if it has room beside all slices, which may be used up at the moment of its turn
        most = 1
        waits = window == 0 and out + c <= burst
        if waits then limit = 2 * burst end
        if beyond > 0 then limit = 0 end -- a higher limit used more, beside which nobody could tell whether it is lent
      end
      local free = limit - used
      local k = free / c
      k = k - k % 1
      if k > most then k = most end
      if k < 0 then k = 0 end
      -- The quotient may have been rounded up, and near 2^53 the sum loses what is too much. Neither is ever too low.
      while k > 0 and (k * c > free or used + k * c > limit) do k = k - 1 end
      used = used + k * c
      if waits and k > 0 and used > burst then -- lent, or it would drain before it is spent
        out = out + c
        if epoch % 2 == 0 then lent0 = lent0 + c else lent1 = lent1 + c end
      end
      took[j] = k
      admitted = admitted + k
      refused = refused or k < most
    end

    -- Lend up to a share of what is free, in whole units.
    local granted = 0
    if want > 0 and not refused then
      local g = (burst - used) / divisor
      g = g - g % 1
      if g > want then g = want end
      if g > MAX_SLICE then g = MAX_SLICE end
      g = g - g % unit
      if g >= least then
        granted = g
        used, out = used + g, out + g
        if epoch % 2 == 0 then lent0 = lent0 + g else lent1 = lent1 + g end
      end
    end

    -- Write the account. What changes nothing writes nothing: a flood of refusals costs no writes, and leaves no
    -- rounding behind. An empty one is deleted: that forgets its ts, which only matters after the clock stepped back,
    -- and a bucket that is full at ts may as well be full at the clock.
    local text
    if not (dirty or admitted > 0 or granted > 0) then
      text = format('%.17g', used)
    else
      used = used + beyond
      text = format('%.17g', used)
      if used > 0 then

        -- It has to live until it is empty by the limit at hand and holds no lease, or its window ends; while the clock
        -- is behind the account, that much longer. A writer with a lower limit (used > B) never shortens it; of an
        -- account that was far ahead, the key's time has begun then.
        local us, left = ts - clock, -1
        if used > burst then
          left = call('PTTL', key)
          left = type(left) == 'number' and left - (ahead / 1000 - ahead / 1000 % 1) or -1
        end
        if window > 0 then
          us = us + (index + 1) * window - ts
        else
          local drains = used / rate
          -- Of what a higher limit used, the writer does not know the rate; by its own, it could take ages to drain.
          -- But it knows how long the key had to live, without its leases, when it was last written: no less was used
          -- then than now, but for what is added.
          if used > debt then
            local had = 0
            if left >= 0 then
              local was = wasTs / E
              local life = wasOut > 0 and (was - was % 1 + 2) * E - wasTs or 0
              had = 1000 * (left + 1) + ts - wasTs - life
            end
            had = had + (used > wasUsed and used - wasUsed or 0) / rate
            if had < debt / rate then had = debt / rate end
            if had < drains then drains = had end
          end
          us = us + drains
          if out > 0 then us = us + (epoch + 2) * E - ts end
        end
        local ms = us / 1000
        if ms < MAX_TTL then ms = ms + -ms % 1 else ms = MAX_TTL end -- rounded up
        if left > ms then ms = left end
        if ms < 1 then ms = 1 end

        local lent = out > 0 and format(' %.0f %.0f', lent0, lent1) or ' 0 0'
        local stamp = ts == clock and present or format(' %.0f', ts)
        problem = call('SET', key, text .. stamp .. lent, 'PX', format('%.0f', ms)).err
      elseif found then
        local done = call('DEL', key)
        problem = type(done) == 'table' and done.err or nil
      else
        problem = nil
      end
      if problem then break end
      if used > debt then -- as the next reader will see it
        text = format('%.17g', used - (used - (burst > out and burst or out)))
      end
    end

    problem = nil
    reply[n + 1] = flags
    reply[n + 2] = ts - clock
    reply[n + 3] = text
    reply[n + 4] = out
    reply[n + 5] = granted
    n = n + 5
    for j = 1, runs do reply[n + j] = took[j] end
    n = n + runs
  until true
  if problem then
    reply[n + 1] = -1
    reply[n + 2] = problem
    n = n + 2
  end
end
return reply
