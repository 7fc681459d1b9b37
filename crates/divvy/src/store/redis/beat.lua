-- A heartbeat, if the session is current, and what the member reports of the quarantine, also if
-- it is not.
-- KEYS: session, node, info, the set of all nodes, that of the cluster's, the quarantine.
-- ARGV: nonce, the session's milliseconds, the worker's id, the node's value, EX or PX and the
-- time to live of the heartbeat, the same in milliseconds, the info, the channel; then, unless the
-- quarantine is switched off, the longest lease that the member knows of, the quarantine that it
-- has waited in and for how long, in milliseconds, and a nonce that no quarantine has had.
-- Returns 1, or 0 if the session is over, then the quarantine, its longest lease in milliseconds,
-- and 1 if it is over.
-- What is there already is only renewed: a server whose memory is full still does that.
local function is(key, value)
  return redis.pcall('GETRANGE', key, 0, #value) == value
end
local function beat()
  if not is(KEYS[1], ARGV[1]) then
    return 0
  end
  redis.call('PEXPIRE', KEYS[1], ARGV[2])
  local news = redis.call('EXISTS', KEYS[2]) == 0 or not is(KEYS[3], ARGV[8])
  for key, value in pairs({ [KEYS[2]] = ARGV[4], [KEYS[3]] = ARGV[8] }) do
    if is(key, value) then
      redis.call('PEXPIRE', key, ARGV[7])
    else
      redis.call('SET', key, value, ARGV[5], ARGV[6])
    end
  end
  for i = 4, 5 do
    -- One that somebody has written over is no set: the other one tells who is there.
    if redis.pcall('SISMEMBER', KEYS[i], ARGV[3]) == 0 then
      redis.call('SADD', KEYS[i], ARGV[3])
    end
  end
  if news then
    redis.pcall('PUBLISH', ARGV[9], ARGV[3])
  end
  return 1
end
local tenure = beat()
if #ARGV == 9 then
  return { tenure }
end

-- The quarantine is '<history> <nonce> <longest lease> open' or 'closed'. One of another history
-- counts only for its longest lease; what nobody of us can have written does not count.
local before = redis.pcall('GETRANGE', KEYS[6], 0, 191)
local now = history()
local of, nonce, longest, state
if type(before) == 'string' then
  of, nonce, longest, state = string.match(before, '^(%x+) (%x+) (%d+) (%l+)$')
end
longest = tonumber(longest) or 0
if longest > 86400000 then
  of, longest = nil, 0
end
if of ~= now then
  nonce, state = ARGV[13], 'closed'
end
longest = math.max(longest, tonumber(ARGV[10]))
local id = now .. ' ' .. nonce
if ARGV[11] == id and tonumber(ARGV[12]) >= longest then
  state = 'open'
end
local after = id .. ' ' .. string.format('%.0f', longest) .. ' ' .. state
if after ~= before then
  redis.call('SET', KEYS[6], after)
end
return { tenure, id, longest, state == 'open' and 1 or 0 }
