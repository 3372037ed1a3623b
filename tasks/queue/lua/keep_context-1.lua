-- Keeps the trace context of a report beside its executions, for the refresh that will include the report.
--
-- KEYS[1] traces  hash  ID:VENDOR -> lines `TIMESTAMP CONTEXT`, the latest last
-- ARGV[1] context  text without a line break
-- ARGV[2..] members
-- returns how many members keep it
--
-- A full hash takes no further members, so the first reports of a burst are traced completely and the others not at
-- all. The hash expires a while after it was begun, and not after its last change: contexts of executions that are
-- never refreshed must not stay as long as reports keep coming.
--
-- include _clock
-- from tasks/pacing.py: MOST_TRACED, MOST_CONTEXTS, TRACES_TTL_MS
local traces = KEYS[1]

local line = text(now_us()) .. ' ' .. ARGV[1]
local room, kept = MOST_TRACED - redis.call('HLEN', traces), 0
for i = 2, #ARGV do
    local before = redis.call('HGET', traces, ARGV[i])
    if not before then
        room = room - 1
    end
    if before or room >= 0 then
        local lines = {}
        for one in string.gmatch(before or '', '[^\n]+') do
            lines[#lines + 1] = one
        end
        lines[#lines + 1] = line
        if #lines > MOST_CONTEXTS then
            table.remove(lines, 1)
        end
        redis.call('HSET', traces, ARGV[i], table.concat(lines, '\n'))
        kept = kept + 1
    end
end
if kept > 0 and redis.call('PTTL', traces) < 0 then
    redis.call('PEXPIRE', traces, TRACES_TTL_MS)
end
return kept
