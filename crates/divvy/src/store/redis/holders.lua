-- Who holds leases. KEYS: of each lease its key and its fence.
-- Returns of each its holder, the milliseconds left and its fence, or false. What another client
-- has put there may be huge or no text at all.
local found = {}
for i = 1, #KEYS / 2 do
  local lease, fence = KEYS[2 * i - 1], KEYS[2 * i]
  local left = redis.call('PTTL', lease)
  if left == -2 then
    found[i] = false
  else
    local holder = redis.pcall('GETRANGE', lease, 0, 1023)
    local record = redis.pcall('GETRANGE', fence, 0, 63)
    found[i] = {
      type(holder) == 'string' and holder or '',
      left,
      type(record) == 'string' and record or '',
    }
  end
end
return found
