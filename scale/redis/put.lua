-- A Write. KEYS: the entry; its new index and limit, if any. ARGV: base, name,
-- Prev, "" to delete, value, owner, ttl, in, index, limit, max, channel, what is told
-- of the key. It returns what has become of the write, and Rev, owner, when it is due
-- and value of what is there.

local changed, written, full = 0, 1, 2
local base, name, index, limit = ARGV[1], ARGV[2], ARGV[9], ARGV[10]
local ttl, due = tonumber(ARGV[7]), tonumber(ARGV[8])

local function tell(rev, prev)
  if ARGV[12] ~= '' then
    redis.call('PUBLISH', ARGV[12], 'k' .. digits(rev) .. ' ' .. digits(prev) .. ' ' .. ARGV[13])
  end
end

local e = redis.call('HMGET', KEYS[1], 'r', 'i', 'l', 'd')
local prev = tonumber(e[1] or 0)
if ARGV[3] ~= '-1' and tonumber(ARGV[3]) ~= prev then
  if prev == 0 then return {changed} end
  local c = redis.call('HMGET', KEYS[1], 'r', 'o', 'd', 'v')
  return {changed, c[1], c[2], c[3], c[4]}
end

if ARGV[4] == '' then
  if prev > 0 then
    if e[2] then redis.call('ZREM', base .. 'i:' .. e[2], name) end
    if e[3] then redis.call('ZREM', base .. 'l:' .. e[3], name) end
    redis.call('DEL', KEYS[1])
    tell(0, prev)
  end
  return {written, '0', ''}
end

local within = e[3]
if prev == 0 and limit ~= '' then
  local key = base .. 'l:' .. limit
  redis.call('ZREMRANGEBYSCORE', key, '-inf', now)
  if redis.call('ZCARD', key) >= tonumber(ARGV[11]) then return {full} end
  within = limit
end

local here, at = e[2], e[4]
if here and (due < 0 or due > 0 and here ~= index) then
  redis.call('ZREM', base .. 'i:' .. here, name)
  here, at = false, false
end
if due > 0 then
  at, here = put_off(base, name, index, at, due), index
end
if ttl > 0 then
  keep(base, name, here, within, ttl)
elseif here and here ~= e[2] then
  outlive(base .. 'i:' .. here, redis.call('PTTL', KEYS[1]))
end

local rev = after(prev)
redis.call('HSET', KEYS[1], 'r', digits(rev), 'o', ARGV[6], 'v', ARGV[5])
if at ~= e[4] then
  if at then redis.call('HSET', KEYS[1], 'i', here, 'd', at) else redis.call('HDEL', KEYS[1], 'i', 'd') end
end
if within ~= e[3] then redis.call('HSET', KEYS[1], 'l', within) end
if ttl > 0 then redis.call('PEXPIRE', KEYS[1], ttl) end
tell(rev, prev)
return {written, digits(rev), ARGV[6], at}
