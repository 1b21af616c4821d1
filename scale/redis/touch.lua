-- A Look that lets an entry live on if it is as known. KEYS: the entry. ARGV: base,
-- name, known, ttl, in. It returns Rev, owner, when it is due and, if it is not as
-- known, the value.

local e = redis.call('HMGET', KEYS[1], 'r', 'o', 'd', 'i', 'l')
if not e[1] then return {} end
if e[1] ~= ARGV[3] then return redis.call('HMGET', KEYS[1], 'r', 'o', 'd', 'v') end
local ttl, due, at, index = tonumber(ARGV[4]), tonumber(ARGV[5]), e[3], e[4]
if ttl > 0 then keep(ARGV[1], ARGV[2], index, e[5], ttl) end
if index and due > 0 then
  at = put_off(ARGV[1], ARGV[2], index, at, due)
  redis.call('HSET', KEYS[1], 'd', at)
end
if ttl > 0 then redis.call('PEXPIRE', KEYS[1], ttl) end
return {e[1], e[2], at}
