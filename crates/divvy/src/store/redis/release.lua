-- Ends leases, where the tenure is still current, and tells the others.
-- KEYS: of each claim its lease and its fence. ARGV: the worker, the channel, then the nonces.
-- Returns the positions of the claims whose tenure was over.
local worker = ARGV[1]
local over, ended = {}, {}
for i = 1, #KEYS / 2 do
  local lease = KEYS[2 * i - 1]
  local holder = redis.pcall('GETRANGE', lease, 0, #worker)
  local record = redis.pcall('GETRANGE', KEYS[2 * i], 0, 63)
  if holder == worker and type(record) == 'string'
      and string.sub(record, -33) == ' ' .. ARGV[2 + i] then
    redis.call('DEL', lease)
    ended[#ended + 1] = string.sub(lease, 7)
  else
    over[#over + 1] = i
  end
end
if #ended > 0 then
  redis.pcall('PUBLISH', ARGV[2], table.concat(ended, '\n'))
end
return over
