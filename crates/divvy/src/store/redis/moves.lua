-- Reads the log of moves from its end, as far as it may reach. Somebody else may have written more.
-- KEYS: the log. ARGV: how many lines and how many bytes are read at most.
-- Returns the lines, the newest first, or 0 if the key holds something else.
local lines_max, bytes_max = tonumber(ARGV[1]), tonumber(ARGV[2])
local found, bytes = {}, 0
while true do
  local some = redis.pcall('LRANGE', KEYS[1], -#found - 64, -#found - 1)
  if some.err then
    return string.find(some.err, 'WRONGTYPE', 1, true) and 0 or some
  end
  for i = #some, 1, -1 do
    bytes = bytes + #some[i] + 1
    if bytes > bytes_max or #found == lines_max then
      return found
    end
    found[#found + 1] = some[i]
  end
  if #some < 64 then
    return found
  end
end
