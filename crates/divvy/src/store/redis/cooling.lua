-- KEYS: marks of moved partitions. Returns the positions of those that are there.
local found = {}
for i = 1, #KEYS do
  if redis.call('EXISTS', KEYS[i]) == 1 then
    found[#found + 1] = i
  end
end
return found
