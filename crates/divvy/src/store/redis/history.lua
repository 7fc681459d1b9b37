-- Which history the server's data has, in hexadecimal digits: the run of its process and, if it was
-- a replica before, the replication id that it got with its promotion. What it had copied as a
-- replica may lack leases that it had granted before, in the same run.
local function history()
  local run = string.match(redis.call('INFO', 'server'), 'run_id:(%x+)')
  local replication = redis.call('INFO', 'replication')
  -- A primary also gets another id when its first replica connects, and when the last one has been
  -- gone for an hour. It has forgotten nothing then, and has no second id.
  if not string.match(replication, 'master_replid2:0*[1-9a-f]') then
    return run
  end
  return run .. string.match(replication, 'master_replid:(%x+)')
end

