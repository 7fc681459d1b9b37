-- Takes leases that nobody holds, each with a token above its last.
-- KEYS: the quarantine, then of each claim its lease and its fence.
-- ARGV: the worker, EX or PX, the time to live, the same in milliseconds, or 0 if no quarantine
-- counts, then the nonce of each claim.
-- Returns of each claim its token, or 'held', 'quarantined', or 'unreadable' if its fence is not
-- ours.
local is_open = true
local ttl = tonumber(ARGV[4])
if ttl > 0 then
  -- As beat.lua writes it. Of another history, it says nothing of this one.
  local record = redis.pcall('GETRANGE', KEYS[1], 0, 191)
  local id, longest
  if type(record) == 'string' then
    id, longest = string.match(record, '^(' .. history() .. ' %x+) (%d+) open$')
  end
  is_open = id ~= nil
  if is_open and tonumber(longest) < ttl then
    redis.call('SET', KEYS[1], id .. ' ' .. ARGV[4] .. ' open')
  end
end
local time = redis.call('TIME')
local floor = (tonumber(time[1]) * 1000 + math.floor(tonumber(time[2]) / 1000)) * 1024
local results = {}
for i = 1, (#KEYS - 1) / 2 do
  local lease, fence = KEYS[2 * i], KEYS[2 * i + 1]
  local result = 'held'
  if redis.call('EXISTS', lease) == 0 then
    local record = redis.pcall('GETRANGE', fence, 0, 63)
    local last = 0
    if type(record) ~= 'string' then
      last = nil
    elseif record ~= '' then
      last = tonumber(string.match(record, '^(%d+) %x+$'))
    end
    if not is_open then
      result = 'quarantined'
    elseif not last or last >= 9007199254740991 then
      result = 'unreadable'
    else
      result = string.format('%.0f', math.max(last + 1, floor))
      -- The fence first: a lease without one would be nobody's.
      redis.call('SET', fence, result .. ' ' .. ARGV[4 + i])
      redis.call('SET', lease, ARGV[1], 'NX', ARGV[2], ARGV[3])
    end
  end
  results[i] = result
end
return results
