-- Deletes a value if it is that of a revision, and tells the others.
-- KEYS: the value, the last revision, the index.
-- ARGV: the expected revision, the key's name, the channel.
-- Returns the revision of the deletion, or false.
local head = redis.pcall('GETRANGE', KEYS[1], 0, 17)
local current = type(head) == 'string' and string.match(head, '^(%d+) ')
if current ~= ARGV[1] then
  return false
end
local last = tonumber(redis.call('GET', KEYS[2]) or '0')
if not last or last >= 9007199254740991 then
  return redis.error_reply('UNREADABLE ' .. KEYS[2] .. ' is not a number that can grow')
end
local time = redis.call('TIME')
local floor = (tonumber(time[1]) * 1000 + math.floor(tonumber(time[2]) / 1000)) * 1024
local revision = string.format('%.0f', math.max(last + 1, floor))
redis.call('SET', KEYS[2], revision)
redis.call('DEL', KEYS[1])
redis.call('ZREM', KEYS[3], ARGV[2])
redis.pcall('PUBLISH', ARGV[3], 'deleted ' .. revision .. ' ' .. ARGV[2])
return revision
