-- Append. KEYS: the box, its messages. ARGV: data, keep, ttl, refuse, recent, prefix,
-- box, from or '', after. It returns the Rev, 0 if there is no room, -1 if From does not
-- read the box up to after, and the reader.

local data, keep, size = ARGV[1], tonumber(ARGV[2]), #ARGV[1] + 64
local b = redis.call('HMGET', KEYS[1], 'o', 'r', 'a', 'n')
local last, sum = tonumber(b[2] or 0), tonumber(b[4] or 0)
local rev, read, recent = after(last), tonumber(b[3] or 0), tonumber(ARGV[5])
local counts = ARGV[8] ~= '' -- as given
if counts then
  if ARGV[8] ~= b[1] or tonumber(ARGV[9]) ~= last then return {'-1', ''} end
  read = math.max(read, last)
end

if keep > 0 then
  if size > keep then return {'0', ''} end
  -- The oldest have to go. Nothing is dropped before it is known that enough can.
  local from = '-'
  while recent > 0 and sum > recent do
    local m = redis.call('XRANGE', KEYS[2], from, '+', 'COUNT', 1)[1]
    if not m or tonumber(string.match(m[1], '^%d+')) > read then break end
    sum = sum - #m[2][4] - 64
    from = '(' .. m[1]
  end
  while sum + size > keep do
    local m = redis.call('XRANGE', KEYS[2], from, '+', 'COUNT', 1)[1]
    if not m then
      sum = 0 -- somebody has deleted them
      break
    end
    if ARGV[4] == '1' and tonumber(string.match(m[1], '^%d+')) > read then return {'0', ''} end
    sum = sum - #m[2][4] - 64
    from = '(' .. m[1]
  end
  if from ~= '-' then
    redis.call('XTRIM', KEYS[2], 'MINID', digits(tonumber(string.match(from, '%d+')) + 1))
  end
  redis.call('XADD', KEYS[2], digits(rev) .. '-0', 'p', digits(last), 'd', data)
  redis.call('HSET', KEYS[1], 'r', digits(rev), 'n', sum + size)
  if counts then redis.call('HSET', KEYS[1], 'a', digits(read), 'g', digits(rev)) end
  redis.call('PEXPIRE', KEYS[2], outlive(KEYS[1], tonumber(ARGV[3])))
end

if counts then return {digits(rev), b[1]} end
local to = keep > 0 and string.match(b[1] or '', '^([^/]*)/')
if to then
  redis.call('PUBLISH', ARGV[6] .. to, 'k' .. digits(rev) .. ' ' .. digits(last) .. '  ' .. ARGV[7])
else
  redis.call('PUBLISH', ARGV[6] .. ARGV[7], 'm' .. digits(rev) .. ' ' .. digits(last) .. ' ' .. data)
end
return {digits(rev), b[1] or ''}
