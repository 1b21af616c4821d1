-- Read. KEYS: the box, its messages. ARGV: after, reader, ttl of who takes it or 0,
-- bytes. It returns whether the reader may, who was it before, and for each
-- message its id, the Rev before and the data.

local before = redis.call('HGET', KEYS[1], 'o') or ''
local ttl, most = tonumber(ARGV[3]), tonumber(ARGV[4])
if ttl > 0 then
  redis.call('HSET', KEYS[1], 'o', ARGV[2], 'a', ARGV[1])
  redis.call('PEXPIRE', KEYS[2], outlive(KEYS[1], ttl))
elseif before ~= ARGV[2] then
  return {0, before}
end

-- Messages may be long: few are asked for at first, then more.
local found, size, from, count = {1, before}, 0, '(' .. ARGV[1] .. '-0', 2
while true do
  local list = redis.call('XRANGE', KEYS[2], from, '+', 'COUNT', count)
  for _, m in ipairs(list) do
    size = size + #m[2][4]
    if size > most and #found > 2 then return found end
    table.insert(found, m[1])
    table.insert(found, m[2][2])
    table.insert(found, m[2][4])
    from = '(' .. m[1]
  end
  if #list < count then return found end
  if size < most / 8 then count = math.min(count * 4, 512) end
end
