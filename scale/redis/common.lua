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

-- put_off returns when an entry of an index is due, as its field says it. The index
-- is told only what is sooner than it knew, as that costs most: an entry is due when
-- the field says so as well, and Due tells the index.
local function put_off(base, name, index, at, due)
  if not at or now + due < tonumber(at) then redis.call('ZADD', base .. 'i:' .. index, now + due, name) end
  return digits(now + due)
end

-- keep lets the index and the limit of an entry, if any, live as long as it does.
local function keep(base, name, index, limit, ttl)
  if index then outlive(base .. 'i:' .. index, ttl) end
  if limit then
    redis.call('ZADD', base .. 'l:' .. limit, now + ttl * 1000, name)
    outlive(base .. 'l:' .. limit, ttl)
  end
end
