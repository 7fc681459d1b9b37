-- Which workers are alive, and what they say of themselves.
-- KEYS: the set of all nodes, that of the cluster's, then of each worker its node and its info.
-- ARGV: the workers' ids.
-- Returns of each its info, which may be empty, or false if it is dead. The dead leave the sets;
-- whoever comes back adds itself again.
local found = {}
for i = 1, #ARGV do
  if redis.call('EXISTS', KEYS[2 * i + 1]) == 1 then
    local info = redis.pcall('GETRANGE', KEYS[2 * i + 2], 0, 65536)
    found[i] = type(info) == 'string' and info or ''
  else
    redis.pcall('SREM', KEYS[1], ARGV[i])
    redis.pcall('SREM', KEYS[2], ARGV[i])
    found[i] = false
  end
end
return found
