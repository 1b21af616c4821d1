-- What all scripts begin with. Times are in microseconds, but those to live, which
-- are in milliseconds, as the commands take them.
--
-- While the slot of a part moves to another machine of a cluster, a command on a
-- key that has moved already fails and ends its script. So scripts change indexes
-- and limits first, in which a name too many does no harm, and entries last.

local at = redis.call('TIME')
local now = at[1] * 1000000 + at[2]

-- digits writes a number in full: Lua would round one of sixteen digits.
local function digits(n) return string.format('%.0f', n) end

-- after returns the Rev that follows another one.
local function after(rev) return math.max(rev + 1, now) end

-- outlive keeps a key for at least so long, and returns how long.
local function outlive(key, ttl)
  local rest = redis.call('PTTL', key)
  if rest >= ttl then return rest end
  redis.call('PEXPIRE', key, ttl)
  return ttl
end

-- note notes in its index when an entry is due, and in its limit how long it
-- counts: ttl and due are 0 where nothing changes, rest is how long the entry has.
local function note(base, name, index, limit, ttl, due, rest)
  if index then
    if due > 0 then redis.call('ZADD', base .. 'i:' .. index, now + due, name) end
    if due > 0 or ttl > 0 then outlive(base .. 'i:' .. index, math.max(ttl, rest)) end
  end
  if limit and ttl > 0 then
    redis.call('ZADD', base .. 'l:' .. limit, now + ttl * 1000, name)
    outlive(base .. 'l:' .. limit, ttl)
  end
end
