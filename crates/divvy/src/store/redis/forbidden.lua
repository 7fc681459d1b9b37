-- Tries commands that this user needs, in ways that change nothing: on a key of another type, on
-- a key that is not there, or with words that contradict each other.
-- KEYS: none. ARGV: a key that holds a text, one that is not there, a channel, then the commands.
-- Returns the commands that access rules forbid.
local text, absent, channel = ARGV[1], ARGV[2], ARGV[3]
local tries = {
  DEL = { absent }, EXISTS = { text }, GET = { text }, GETRANGE = { text, 0, 0 },
  INFO = { 'server' }, LRANGE = { text, 0, 0 }, LTRIM = { text, 0, -1 }, PEXPIRE = { absent, 1 },
  PTTL = { absent }, PUBLISH = { channel, '' }, RPUSH = { text, '' }, SADD = { text, '' }, SET = { text, '', 'NX', 'XX' }, SISMEMBER = { text, '' },
  SREM = { text, '' }, SSCAN = { text, 0 }, TIME = {}, ZADD = { text, 0, '' },
  ZRANGEBYLEX = { text, '-', '+' }, ZREM = { text, '' },
}
-- Which is said in other words by each generation of servers.
local words = { 'NOPERM', "The user executing the script can't", 'ACL failure in script' }
local function is_forbidden(reply)
  for _, said in ipairs(words) do
    if type(reply) == 'table' and reply.err and string.find(reply.err, said, 1, true) then
      return true
    end
  end
end
local forbidden = {}
for i = 4, #ARGV do
  if is_forbidden(redis.pcall(ARGV[i], unpack(tries[ARGV[i]]))) then
    forbidden[#forbidden + 1] = ARGV[i]
  end
end
return forbidden
