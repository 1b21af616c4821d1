-- A Look that lets an entry live on if it is as known. KEYS: the entry. ARGV: base,
-- name, known, ttl, in. It returns Rev, owner and, if it is not as known, the value.

local e = redis.call('HMGET', KEYS[1], 'r', 'o', 'i', 'l')
if not e[1] then return {} end
if e[1] ~= ARGV[3] then return redis.call('HMGET', KEYS[1], 'r', 'o', 'v', 'w') end
local ttl = tonumber(ARGV[4])
note(ARGV[1], ARGV[2], e[3], e[4], ttl, tonumber(ARGV[5]), redis.call('PTTL', KEYS[1]))
if ttl > 0 then redis.call('PEXPIRE', KEYS[1], ttl) end
return {e[1], e[2]}
