-- Writes a value if its key is as expected, and tells the others.
-- KEYS: the value, the last revision, the index.
-- ARGV: the expected revision or nothing, the value, the key's name, the channel, how long a
-- value may be that is told along.
-- Returns the new revision, or false.
local head = redis.pcall('GETRANGE', KEYS[1], 0, 17)
local current = type(head) == 'string' and string.match(head, '^(%d+) ')
if not current and redis.call('EXISTS', KEYS[1]) == 0 then
  current = ''
end
if current ~= ARGV[1] then
  return false
end
local last = tonumber(redis.call('GET', KEYS[2]) or '0')
if not last or last >= 9007199254740991 then
  return redis.error_reply('UNREADABLE ' .. KEYS[2] .. ' is not a number that can grow')
end
local time = redis.call('TIME')
-- Not below the clock, so that a store that forgot the last one goes on above it.
local floor = (tonumber(time[1]) * 1000 + math.floor(tonumber(time[2]) / 1000)) * 1024
local revision = string.format('%.0f', math.max(last + 1, floor))
-- The value last: whatever fails before it leaves nothing that anybody reads.
redis.call('ZADD', KEYS[3], 0, ARGV[3])
redis.call('SET', KEYS[2], revision)
redis.call('SET', KEYS[1], revision .. ' ' .. ARGV[2])
if #ARGV[2] <= tonumber(ARGV[5]) then
  redis.pcall('PUBLISH', ARGV[4], 'put ' .. revision .. ' ' .. ARGV[3] .. ' ' .. ARGV[2])
else
  redis.pcall('PUBLISH', ARGV[4], 'touched ' .. ARGV[3])
end
return revision
