-- Take. KEYS: the box, its messages. ARGV: from, '' for any; reader; after, -1 for what was
-- given; ttl, 0 to delete; prefix, box; resume or ''. It returns whether it was done, the
-- reader before, the newest message that was given, the newest, and who resumed last.

local b = redis.call('HMGET', KEYS[1], 'o', 'g', 'r', 's')
local owner, given = b[1] or '', tonumber(b[2] or 0)
local from, reader, at, ttl = ARGV[1], ARGV[2], ARGV[3], tonumber(ARGV[4])
local found = {1, owner, digits(given), b[3] or '0', b[4] or ''}
if from ~= '' and from ~= owner then
  found[1] = 0
  return found
end

local function stream(name) return string.match(name, '%+([^+]+)$') end
local resume = ARGV[7]
local resumes = resume ~= '' and stream(resume) and stream(resume) == stream(owner)
if resumes then reader = resume elseif resume ~= '' then at = '-1' end

if ttl == 0 then
  redis.call('DEL', KEYS[1], KEYS[2])
else
  if at == '-1' then at = digits(given) end
  if tonumber(at) > tonumber(found[4]) then at = found[4] end
  redis.call('HSET', KEYS[1], 'o', reader, 'a', at, 't', ttl)
  if from ~= '' or resumes then redis.call('HSET', KEYS[1], 'g', at) end
  if resumes then
    local list = {}
    for name in string.gmatch(found[5], '%S+') do
      if stream(name) ~= stream(resume) then table.insert(list, name) end
    end
    table.insert(list, resume)
    if #list > 8 then table.remove(list, 1) end
    redis.call('HSET', KEYS[1], 's', table.concat(list, ' '))
  end
  redis.call('PEXPIRE', KEYS[2], outlive(KEYS[1], ttl))
end
local to = owner ~= reader and string.match(owner, '^([^/]*)/')
if to then redis.call('PUBLISH', ARGV[5] .. to, 'k' .. digits(now) .. ' 0  ' .. ARGV[6]) end
return found
