-- Adds lines to the log of moves, a list, and cuts it at its beginning. Only what is added and cut
-- is written, however long the log is.
-- KEYS: the log. ARGV: how many lines and how many bytes of it stay, the lines.
-- Returns 1, or 0 if the key holds something else.
local lines_max, bytes_max = tonumber(ARGV[1]), tonumber(ARGV[2])
local pushed = redis.pcall('RPUSH', KEYS[1], unpack(ARGV, 3))
if type(pushed) == 'table' then
  return string.find(pushed.err, 'WRONGTYPE', 1, true) and 0 or pushed
end
local kept, bytes = 0, 0
while kept < pushed do
  local some = redis.call('LRANGE', KEYS[1], -kept - 64, -kept - 1)
  for i = #some, 1, -1 do
    bytes = bytes + #some[i] + 1
    if bytes > bytes_max or kept == lines_max then
      redis.call('LTRIM', KEYS[1], -kept, -1)
      return 1
    end
    kept = kept + 1
  end
end
return 1
