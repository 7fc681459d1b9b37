-- Gives a revision to what somebody else wrote over a value, so that its readers can tell that it
-- changed, and replace or delete it. What is no text counts as nothing.
-- KEYS: the value, the last revision, the index. ARGV: the key's name, the channel.
-- Returns the value, or false if there is none.
local found = redis.pcall('GETRANGE', KEYS[1], 0, -1)
if type(found) ~= 'string' then
  found = ''
elseif redis.call('EXISTS', KEYS[1]) == 0 then
  return false
end
local head = string.match(found, '^([1-9]%d*) ')
local counter = redis.call('GET', KEYS[2])
local last = tonumber(counter or '0')
-- Nobody of us has written a revision above the last; without the last, nobody can tell.
if head and #head <= 16 and (not counter or not last or tonumber(head) <= last) then
  return found
end
if not last or last >= 9007199254740991 then
  return redis.error_reply('UNREADABLE ' .. KEYS[2] .. ' is not a number that can grow')
end
local time = redis.call('TIME')
local floor = (tonumber(time[1]) * 1000 + math.floor(tonumber(time[2]) / 1000)) * 1024
local revision = string.format('%.0f', math.max(last + 1, floor))
-- Enough to see what it was.
local value = revision .. ' ' .. string.sub(found, 1, 256)
redis.call('ZADD', KEYS[3], 0, ARGV[1])
redis.call('SET', KEYS[2], revision)
redis.call('SET', KEYS[1], value)
redis.pcall('PUBLISH', ARGV[2], 'touched ' .. ARGV[1])
return value
