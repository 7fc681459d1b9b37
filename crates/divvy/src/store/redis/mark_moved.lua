-- Marks partitions as moved now. KEYS: their marks. ARGV: EX or PX, the cooldown.
local now = redis.call('TIME')[1]
for i = 1, #KEYS do
  redis.call('SET', KEYS[i], now, ARGV[1], ARGV[2])
end
return #KEYS
