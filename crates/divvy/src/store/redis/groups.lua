-- KEYS: documents of groups. Returns each, cut where it is longer than any that we write, or
-- false if there is none.
local found = {}
for i = 1, #KEYS do
  local document = redis.call('EXISTS', KEYS[i]) == 1 and redis.pcall('GETRANGE', KEYS[i], 0, 65536)
  found[i] = type(document) == 'string' and document
end
return found
