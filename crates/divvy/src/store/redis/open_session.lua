-- Takes a worker's name for a session. KEYS: the session. ARGV: its nonce, milliseconds.
-- Returns nothing if it was free or is this session's, else for how many milliseconds another one has it.
-- What is no nonce, or does not expire, is no session: somebody else wrote it, and nobody renews it.
local held = redis.pcall('GETRANGE', KEYS[1], 0, 32)
local is_nonce = type(held) == 'string' and #held == 32 and string.match(held, '^%x+$')
if not is_nonce or held == ARGV[1] or redis.call('PTTL', KEYS[1]) == -1 then
  redis.call('DEL', KEYS[1])
end
if redis.call('SET', KEYS[1], ARGV[1], 'NX', 'PX', ARGV[2]) then
  return false
end
return redis.call('PTTL', KEYS[1])
