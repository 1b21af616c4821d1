-- Read. KEYS: the box, its messages. ARGV: after, -1 for what was not given; reader, '' if
-- nothing is to change; bytes. It returns whether the reader may, who the reader is, and
-- for each message its id, the Rev before and the data.

local b = redis.call('HMGET', KEYS[1], 'o', 'g', 'a', 't')
local owner, given, reader, most = b[1] or '', tonumber(b[2] or 0), ARGV[2], tonumber(ARGV[3])
if reader ~= '' and reader ~= owner then return {0, owner} end
local at = ARGV[1]
if at == '-1' then at = digits(given) end

-- Messages may be long: few are asked for at first, then more.
local found, size, from, count, newest = {1, owner}, 0, '(' .. at .. '-0', 2, nil
local full = false
while not full do
  local list = redis.call('XRANGE', KEYS[2], from, '+', 'COUNT', count)
  for _, m in ipairs(list) do
    size = size + #m[2][4]
    full = size > most and #found > 2
    if full then break end
    table.insert(found, m[1])
    table.insert(found, m[2][2])
    table.insert(found, m[2][4])
    newest = m[1]
    from = '(' .. m[1]
  end
  if #list < count then break end
  if size < most / 8 then count = math.min(count * 4, 512) end
end
if reader == '' then return found end

if tonumber(at) > tonumber(b[3] or 0) then redis.call('HSET', KEYS[1], 'a', at) end
newest = newest and tonumber(string.match(newest, '^%d+'))
if newest and newest > given then redis.call('HSET', KEYS[1], 'g', digits(newest)) end
local ttl = tonumber(b[4] or 0)
if redis.call('PTTL', KEYS[1]) < ttl * 7 / 8 then redis.call('PEXPIRE', KEYS[2], outlive(KEYS[1], ttl)) end
return found
