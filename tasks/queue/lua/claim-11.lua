-- Claims a page of members: moves them from the queue to processing, as tokens of one node and one stamp.
--
-- KEYS[1] queue  KEYS[2] processing  KEYS[3] attempts  KEYS[4] nodes  KEYS[5] wake  KEYS[6] pause  KEYS[7] cursor
-- KEYS[8] heat  KEYS[9] marks  KEYS[10] waiting  KEYS[11] ticked
-- ARGV[1] node          the node that claims
-- ARGV[2] holder        the node as its tokens name it: `waiting@NODE`, because the claim waits for a worker
-- ARGV[3] most          most members of this page
-- ARGV[4] share         members a node may have in flight; the limit is share times the number of live nodes
-- ARGV[5] further       the stamp of the claim, for its further pages; empty for the first
-- returns {stamp, backlog before, live nodes, room left, wait (us), {members}, {failures}}; wait is the time until the
--         first resting member may be claimed, 0 if no member rests; failures is empty if no member failed ever
--
-- Other nodes claim between two pages, so each page computes the room that is left, and scans from where the last one
-- stopped.
--
-- from tasks/conf/pacing.py: DEPTH, SMALL, FIRST_REST_US, LONGEST_REST_SECONDS, MANY_MARKS, MOST_COUNTERS
local queue, processing, attempts, nodes = KEYS[1], KEYS[2], KEYS[3], KEYS[4]
local wake, pause, cursor_key, heat, marks = KEYS[5], KEYS[6], KEYS[7], KEYS[8], KEYS[9]
local waiting, ticked = KEYS[10], KEYS[11]
local node, holder, most, share = ARGV[1], ARGV[2], tonumber(ARGV[3]), tonumber(ARGV[4])
local stamp = ARGV[5]
local longest_rest = LONGEST_REST_SECONDS * 1000000
local is_first = stamp == ''

-- Take up to `most` members off the queue, by scanning it from the cursor. Returns the next cursor and the members.
-- SPOP chooses each member at random, which costs ten times as much as a page of SSCAN. So a long queue is scanned in
-- order, and the cursor wraps around, so every member is claimed eventually. A scan that finds nothing is followed by
-- a pop.
local function scan(cursor)
    cursor = string.match(cursor or '', '^%d+$') and #cursor < 20 and cursor or '0'
    local found
    cursor, found = unpack(redis.call('SSCAN', queue, cursor, 'COUNT', most))
    if #found == 0 then
        found = redis.call('SPOP', queue, most)
    else
        if #found > most then
            -- SSCAN found too many. A random start decides which members wait for the next round. With a fixed start
            -- the same members could wait forever, if the members before them return before the cursor does.
            local start, chosen = now_us() % #found, {}
            for i = 1, most do
                chosen[i] = found[(start + i) % #found + 1]
            end
            found = chosen
        end
        redis.call('SREM', queue, unpack(found))
    end
    if #found > 0 then
        forget_waiting(waiting, found)
    end
    return cursor, found
end

-- Split the members into those that may be claimed now and those that rest, which go back to the queue. A claimed member
-- rests: `heat` has the step of its rest and when it began. If many marks arrived while it waited, its next rest is twice
-- as long; if few arrived, half. Returns the members that may be claimed, and the time until the first resting member
-- may be. A remaining time longer than the rest itself comes from a clock that has gone back, so it is ignored.
local function rested(members)
    local now, free, resting, wait, notes = now_us(), {}, {}, 0, {}
    local pressed = redis.call('HMGET', marks, unpack(members))
    for i, known in ipairs(redis.call('HMGET', heat, unpack(members))) do
        local step, since = string.match(known or '0:0', '^(%d+):(%d+)$')
        step, since = number(step), number(since)
        local rest = step > 0 and math.min(longest_rest, FIRST_REST_US * 2 ^ (step - 1)) or 0
        local left = since + rest - now
        if left > 0 and left <= rest then
            resting[#resting + 1] = members[i]
            wait = wait == 0 and left or math.min(wait, left)
        else
            free[#free + 1] = members[i]
            if number(pressed[i]) < MANY_MARKS then
                step = math.max(step - 1, 1)
            elseif rest < longest_rest then
                step = step + 1
            end
            notes[#notes + 1] = members[i]
            notes[#notes + 1] = step .. ':' .. text(now)
        end
    end
    if #resting > 0 then
        redis.call('SADD', queue, unpack(resting))
        note_waiting(waiting, resting, true)
    end
    if #free > 0 then
        redis.call('HDEL', marks, unpack(free))
        if redis.call('HLEN', heat) + #free > MOST_COUNTERS then
            redis.call('DEL', heat)
        end
        redis.call('HSET', heat, unpack(notes))
        redis.call('PEXPIRE', heat, text(2 * longest_rest / 1000))
    end
    return free, wait
end

if is_first then
    heartbeat(nodes, node)
    stamp = text(now_us())
    redis.call('SET', ticked, stamp)
end
local backlog, live, in_flight = redis.call('SCARD', queue), live_nodes(nodes), redis.call('SCARD', processing)
local room = live * share - in_flight
-- With room for less than a subtask nothing is claimed, because many small claims cost more than they gain.
if is_first and in_flight > 0 and room < math.min(share / DEPTH, backlog) then
    room = 0 -- the next process that completes finds more room
end
most = math.min(most, room)
local paused = pause_left(pause) > 0
local function reply(wait, members, failures)
    return { stamp, backlog, live, room, wait, members, failures }
end
if paused or most <= 0 or backlog == 0 then
    if is_first and not paused then
        tick_ended(wake)
    end
    return reply(0, {}, {})
end

local members, wait, cursor = nil, 0, '0'
if backlog <= most then
    members = redis.call('SPOP', queue, most)
    redis.call('DEL', waiting)
else
    cursor, members = scan(redis.call('GET', cursor_key))
end
redis.call('SET', cursor_key, cursor)
if is_first and backlog <= SMALL then
    -- A mark after this moment must send a tick or be noticed, because this tick may have made its last claim: its
    -- process checks again in a moment. With a long queue the state stays until the caller publishes its last chunk,
    -- so that the processes that complete in the meantime send no other tick.
    tick_emptied(wake)
    members, wait = rested(members)
end
if #members == 0 then
    return reply(wait, {}, {})
end
redis.call('SADD', processing, unpack(tokens_of(members, holder .. ':' .. stamp)))
local failures = {}
if redis.call('EXISTS', attempts) == 1 then
    failures = redis.call('HMGET', attempts, unpack(members))
    for i = 1, #members do
        failures[i] = text(number(failures[i]))
    end
end
room = room - #members
return reply(wait, members, failures)
