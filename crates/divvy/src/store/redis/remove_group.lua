-- Removes a group, and tells the others. KEYS: its document, the set of groups.
-- ARGV: its name, the channel. Returns whether there was anything of it.
local listed = redis.call('SREM', KEYS[2], ARGV[1])
local written = redis.call('DEL', KEYS[1])
redis.pcall('PUBLISH', ARGV[2], ARGV[1])
return math.max(listed, written)
