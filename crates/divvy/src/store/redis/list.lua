-- A page of keys with their values, in order. KEYS: the index, the last revision.
-- ARGV: what the key of every value begins with, the lower and the upper end, how many keys and
-- how many bytes a page has.
-- Returns the name up to which the page goes, or false if it is the last, then names and values.
local names = redis.call('ZRANGEBYLEX', KEYS[1], ARGV[2], ARGV[3], 'LIMIT', 0, ARGV[4])
local last = tonumber(redis.pcall('GET', KEYS[2]))
local page, bytes = { false }, 0
for i = 1, #names do
  local value = redis.pcall('GET', ARGV[1] .. names[i])
  -- A name without a value is what a write left that was refused.
  if value then
    page[#page + 1] = names[i]
    -- What is no text is no value of ours, as the empty one is.
    value = type(value) == 'string' and value or ''
    local head = tonumber(string.match(value, '^(%d+) '))
    -- Nor is one above the last revision.
    page[#page + 1] = head and last and head > last and '' or value
    bytes = bytes + #page[#page]
  end
  if bytes >= tonumber(ARGV[5]) or i == tonumber(ARGV[4]) then
    page[1] = names[i]
    break
  end
end
return page
