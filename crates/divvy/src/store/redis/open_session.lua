-- Takes a worker's name for a session. KEYS: the session. ARGV: its nonce, milliseconds.
-- Returns nothing if it was free, else for how many milliseconds another one has it.
if redis.call('SET', KEYS[1], ARGV[1], 'NX', 'PX', ARGV[2]) then
  return false
end
return redis.call('PTTL', KEYS[1])
