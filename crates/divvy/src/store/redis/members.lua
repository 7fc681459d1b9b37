-- Which workers are alive, and what they say of themselves.
-- KEYS: the set of all nodes, that of the cluster's, then of each worker its node and its info.
-- ARGV: the workers' ids.
-- Returns of each its info, empty if it says nothing, or false if it is dead. What is there and
-- holds no text is not nothing: readers keep what they last read. The dead leave the sets;
-- whoever comes back adds itself again.
local found = {}
for i = 1, #ARGV do
  if redis.call('EXISTS', KEYS[2 * i + 1]) == 1 then
    local info = redis.pcall('GETRANGE', KEYS[2 * i + 2], 0, 65536)
    if type(info) ~= 'string' or info == '' and redis.call('EXISTS', KEYS[2 * i + 2]) == 1 then
      info = 'no text'
    end
    found[i] = info
  else
    redis.pcall('SREM', KEYS[1], ARGV[i])
    redis.pcall('SREM', KEYS[2], ARGV[i])
    found[i] = false
  end
end
return found
