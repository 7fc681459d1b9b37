-- A heartbeat, if the session is current.
-- KEYS: session, node, info, the set of all nodes, that of the cluster's.
-- ARGV: nonce, the session's milliseconds, the worker's id, the node's value, EX or PX and the
-- time to live of the heartbeat, the same in milliseconds, the info, the channel.
-- Returns 1, or 0 if the session is over.
-- What is there already is only renewed: a server whose memory is full still does that.
local function is(key, value)
  return redis.pcall('GETRANGE', key, 0, #value) == value
end
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
  if redis.call('SISMEMBER', KEYS[i], ARGV[3]) == 0 then
    redis.call('SADD', KEYS[i], ARGV[3])
  end
end
if news then
  redis.pcall('PUBLISH', ARGV[9], ARGV[3])
end
return 1
