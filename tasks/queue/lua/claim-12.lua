-- Claims members: moves them from the queue to processing, as tokens of one node and one stamp.
--
-- KEYS[1] queue       set     ID:VENDOR
-- KEYS[2] processing  set     ID:VENDOR:NODE:TIMESTAMP
-- KEYS[3] attempts    hash    ID:VENDOR -> how often it failed
-- KEYS[4] nodes       zset    NODE by its last heartbeat (us)
-- KEYS[5] wake        string  see wake-3.lua
-- KEYS[6] pause       string  exists while the database is away
-- KEYS[7] stamp       string  the last stamp issued
-- KEYS[8] cursor      string  where the last claim stopped scanning the queue
-- KEYS[9] heat        hash    ID:VENDOR -> STEP:US, the step of its rest, and when the rest began
-- KEYS[10] marks      hash    ID:VENDOR -> how often it was marked while it waited
-- KEYS[11] waiting    zset    ID:VENDOR by when it was put on the queue (us)
-- KEYS[12] ticked     string  when a tick last looked for work (us)
-- ARGV[1] node          the node that claims
-- ARGV[2] holder        the node as its tokens name it: `waiting@NODE`, because the claim waits for a worker
-- ARGV[3] most          most members of this claim
-- ARGV[4] worth         smallest room worth a claim: if there is less room and other claims are in flight, nothing is
--                       claimed, because many small claims cost more than they gain
-- ARGV[5] share         members a node may have in flight; the limit is share times the number of live nodes
-- ARGV[6] ttl           node ttl, us
-- ARGV[7] longest_rest  the longest rest of a hot member, us; 0 for none
-- returns {stamp, cursor, backlog before, live nodes, room left, wait (us), {members}, {failures}}; wait is the time
--         until the first resting member may be claimed, 0 if no member rests; failures is empty if no member failed
--         ever
--
-- include _nodes
-- include _claim
-- include _waiting
-- from tasks/pacing.py: SMALL, TICK_SENT, WAKE_TTL_MS, FIRST_REST_US, MANY_MARKS, MOST_COUNTERS
local queue, processing, attempts, nodes = KEYS[1], KEYS[2], KEYS[3], KEYS[4]
local wake, pause, stamp_key, cursor_key, heat, marks = KEYS[5], KEYS[6], KEYS[7], KEYS[8], KEYS[9], KEYS[10]
local waiting, ticked = KEYS[11], KEYS[12]
local node, holder, most, worth = ARGV[1], ARGV[2], tonumber(ARGV[3]), tonumber(ARGV[4])
local share, ttl, longest_rest = tonumber(ARGV[5]), tonumber(ARGV[6]), tonumber(ARGV[7])

-- Split the members into those that may be claimed now and those that rest. A claimed member rests. If many marks
-- arrived while it waited, its next rest is twice as long; if few arrived, half. So an execution with many reports is
-- refreshed at growing intervals, and all other executions at once. Returns the members that may be claimed, and the
-- time until the first resting member may be; resting members go back to the queue. A remaining time longer than the
-- rest itself comes from a clock that has gone back, so it is ignored.
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

heartbeat(nodes, node)
redis.call('SET', ticked, text(now_us()))
local backlog, live, in_flight = redis.call('SCARD', queue), live_nodes(nodes, ttl), redis.call('SCARD', processing)
local room = live * share - in_flight
if in_flight > 0 and room < math.min(worth, backlog) then
    room = 0 -- the next process that completes finds more room
end
most = math.min(most, room)
local paused, last_stamp, cursor = unpack(redis.call('MGET', pause, stamp_key, cursor_key))
local stamp = stamp_after(last_stamp)
if paused or most <= 0 or backlog == 0 then
    redis.call('DEL', wake)
    return { stamp, '0', backlog, live, room, 0, {}, {} }
end

local members, wait = nil, 0
if backlog <= most then
    members, cursor = redis.call('SPOP', queue, most), '0'
    redis.call('DEL', waiting)
else
    cursor = string.match(cursor or '', '^%d+$') and #cursor < 20 and cursor or '0'
    members, cursor = scan(queue, waiting, cursor, most)
end
redis.call('SET', cursor_key, cursor)
if backlog <= SMALL then
    -- A mark after this moment must send a tick or be noticed, because this tick may have made its last claim.
    -- * All waiting members were taken: the wake key stays, and the process of this tick checks again in a moment
    --   (wake-3.lua).
    -- * There was no room for all: the key is deleted, so the next process that completes may send a tick at once.
    -- With a long queue the key stays until the caller publishes its last chunk. Otherwise every process that
    -- completes in the meantime would send another tick.
    if #members == backlog then
        redis.call('SET', wake, TICK_SENT, 'PX', WAKE_TTL_MS)
    else
        redis.call('DEL', wake)
    end
    if longest_rest > 0 then
        members, wait = rested(members)
    end
end
if #members == 0 then
    return { stamp, cursor, backlog, live, room, wait, {}, {} }
end
redis.call('SET', stamp_key, stamp)
local failures = hold(processing, attempts, members, holder .. ':' .. stamp)
return { stamp, cursor, backlog, live, room - #members, wait, members, failures }
