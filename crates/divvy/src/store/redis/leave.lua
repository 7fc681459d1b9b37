-- Ends a session and its membership, if it is current, and tells the others.
-- KEYS: session, node, info, the set of all nodes, that of the cluster's.
-- ARGV: nonce, the worker's id, the channel. Returns 1, or 0 if the session is over.
if redis.pcall('GETRANGE', KEYS[1], 0, #ARGV[1]) ~= ARGV[1] then
  return 0
end
redis.call('DEL', KEYS[1], KEYS[2], KEYS[3])
redis.pcall('SREM', KEYS[4], ARGV[2])
redis.pcall('SREM', KEYS[5], ARGV[2])
redis.pcall('PUBLISH', ARGV[3], ARGV[2])
return 1
