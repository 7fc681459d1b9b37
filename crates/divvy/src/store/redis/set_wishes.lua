-- Writes what operators wish if it is as they read it, and tells the members.
-- KEYS: the wishes. ARGV: what they were, or nothing, which no wishes are; what they shall be; the
-- channel; the cluster. Returns 1, or 0 if they are others by now.
if redis.call('GETRANGE', KEYS[1], 0, -1) ~= ARGV[1] then
  return 0
end
redis.call('SET', KEYS[1], ARGV[2])
redis.pcall('PUBLISH', ARGV[3], ARGV[4])
return 1
