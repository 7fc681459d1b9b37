-- Takes leases that nobody holds, each with a token above its last.
-- KEYS: of each claim its lease and its fence.
-- ARGV: the worker, EX or PX, the time to live, for how many milliseconds the server must have
-- been up, then the nonce of each claim.
-- Returns for how many milliseconds the quarantine still lasts, then of each claim its token, or
-- 'held', 'quarantined', or 'unreadable' if its fence is not ours.
local left = 0
local needed = tonumber(ARGV[4])
if needed > 0 then
  -- The server counts whole seconds, so it has been up for longer than one less than it says.
  local up = string.match(redis.call('INFO', 'server'), 'uptime_in_seconds:(%d+)')
  left = math.max(0, needed - tonumber(up) * 1000)
end
local time = redis.call('TIME')
local floor = (tonumber(time[1]) * 1000 + math.floor(tonumber(time[2]) / 1000)) * 1024
local results = { left }
for i = 1, #KEYS / 2 do
  local lease, fence = KEYS[2 * i - 1], KEYS[2 * i]
  local result = 'held'
  if redis.call('EXISTS', lease) == 0 then
    local record = redis.pcall('GETRANGE', fence, 0, 63)
    local last = 0
    if type(record) ~= 'string' then
      last = nil
    elseif record ~= '' then
      last = tonumber(string.match(record, '^(%d+) %x+$'))
    end
    if left > 0 then
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
  results[i + 1] = result
end
return results
