-- Due. KEYS: the index. ARGV: base, index, owner, max, lease, bytes. It returns
-- whether there may be more that nobody has looked at, and for each entry its
-- name, Rev, when it is due and value. Names stay in an index when their entries
-- expire, or were made again without it, and where they are when these are due later:
-- they are taken out, or put off, here.

local base, index, most = ARGV[1], ARGV[2], tonumber(ARGV[4])
local found, size = {0}, 0
local due = redis.call('ZRANGEBYSCORE', KEYS[1], '-inf', now, 'LIMIT', 0, most)
for _, name in ipairs(due) do
  local key = base .. 'e:' .. name
  local e = redis.call('HMGET', key, 'r', 'i', 'v', 'd')
  if e[2] ~= index then
    redis.call('ZREM', KEYS[1], name)
  elseif e[4] and tonumber(e[4]) > now then
    redis.call('ZADD', KEYS[1], e[4], name)
  else
    size = size + #e[3]
    if size > tonumber(ARGV[6]) and #found > 1 then return found end
    local rev, at = digits(after(tonumber(e[1]))), digits(now + tonumber(ARGV[5]))
    redis.call('HSET', key, 'r', rev, 'o', ARGV[3], 'd', at)
    redis.call('ZADD', KEYS[1], at, name)
    for _, v in ipairs({name, rev, at, e[3]}) do table.insert(found, v) end
  end
end
if #found == 1 and #due == most then found[1] = 1 end
return found
