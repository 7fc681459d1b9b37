-- Adds lines to the log of moves, and cuts it at its beginning.
-- KEYS: the log. ARGV: how many bytes of it stay, the lines. Returns 1.
local most = tonumber(ARGV[1])
local log = redis.pcall('GETRANGE', KEYS[1], 0, -1)
if type(log) ~= 'string' then
  log = ''
end
log = log .. ARGV[2]
if #log > most then
  local cut = string.find(log, '\n', #log - most, true)
  log = cut and string.sub(log, cut + 1) or ''
end
redis.call('SET', KEYS[1], log)
return 1
