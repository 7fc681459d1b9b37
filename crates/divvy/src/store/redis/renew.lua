-- Lets leases run on, where the tenure is still current.
-- KEYS: of each claim its lease and its fence. ARGV: the worker, milliseconds, then the nonces.
-- Returns the positions of the claims whose tenure is over.
local worker = ARGV[1]
local over = {}
for i = 1, #KEYS / 2 do
  local lease = KEYS[2 * i - 1]
  -- One byte more than the name, for a longer one; no more, for it may be huge.
  local holder = redis.pcall('GETRANGE', lease, 0, #worker)
  local record = redis.pcall('GETRANGE', KEYS[2 * i], 0, 63)
  if holder == worker and type(record) == 'string'
      and string.sub(record, -33) == ' ' .. ARGV[2 + i] then
    redis.call('PEXPIRE', lease, ARGV[2])
  else
    over[#over + 1] = i
  end
end
return over
