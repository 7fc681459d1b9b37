-- Adds or replaces a group, and tells the others.
-- KEYS: its document, the set of groups. ARGV: its name, the document, the channel.
redis.call('SET', KEYS[1], ARGV[2])
redis.call('SADD', KEYS[2], ARGV[1])
redis.pcall('PUBLISH', ARGV[3], ARGV[1])
return 1
