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
-- ARGV[1] node
-- ARGV[2] most members in this page
-- ARGV[3] smallest room worth a claim: if there is less room and other claims are in flight, nothing is claimed
-- ARGV[4] share: how many members a node may have in flight; the limit is share times the number of live nodes
-- ARGV[5] node ttl, us
-- ARGV[6] the longest rest of a hot member, us; 0 for none
-- ARGV[7] up to this backlog, hot members rest
-- ARGV[8] ms after which a tick that was sent counts as lost
-- ARGV[9] stamp of the previous page, if this is a later page of the same claim; else 0
-- ARGV[10] cursor of the previous page; only in a later page
-- ARGV[11] live nodes that the first page returned; only in a later page
-- returns {stamp, cursor, backlog before, room left, live nodes, {members}, {attempts}, wait (us)}; backlog and
--         nodes are valid in the first page only; wait is the time until the first resting member may be claimed,
--         0 if no member rests
--
-- A later page skips what the first page has read already: its caller passes the stamp, the cursor and the live nodes.
local queue, processing, attempts, nodes = KEYS[1], KEYS[2], KEYS[3], KEYS[4]
local wake, pause, stamp_key, cursor_key, heat, marks = KEYS[5], KEYS[6], KEYS[7], KEYS[8], KEYS[9], KEYS[10]
local node, count, worth = ARGV[1], tonumber(ARGV[2]), tonumber(ARGV[3])
local share, ttl, longest = tonumber(ARGV[4]), tonumber(ARGV[5]), tonumber(ARGV[6])
local small, wake_ttl, stamp, cursor = tonumber(ARGV[7]), ARGV[8], ARGV[9], ARGV[10]

-- Take up to 'some' members off the queue. SPOP chooses each member at random, which costs ten times as much as a
-- page of SSCAN. So a long queue is scanned in order, starting where the last claim stopped; the cursor wraps around,
-- so every member is claimed eventually. The last members, and those a scan does not find, are popped.
local function take(some, backlog)
    if backlog > some then
        local page = redis.call('SSCAN', queue, cursor, 'COUNT', some)
        local found = page[2]
        cursor = page[1]
        if #found > some then
            -- SSCAN found too many. A random start decides which members wait for the next round. With a fixed start
            -- the same members could wait forever, if the members before them return before the cursor does.
            local first, chosen = now_us() % #found, {}
            for i = 1, some do
                chosen[i] = found[(first + i) % #found + 1]
            end
            found = chosen
        end
        if #found > 0 then
            redis.call('SREM', queue, unpack(found))
            return found
        end
    end
    return redis.call('SPOP', queue, some)
end

-- Split the members into those that may be claimed now and those that rest. A claimed member rests for 50 ms. If many
-- marks arrived while it waited, its next rest is twice as long; if few arrived, half. So an execution with many
-- reports is refreshed at growing intervals, and all other executions at once. Returns the members that may be
-- claimed, and the time until the first resting member may be; resting members go back to the queue. A remaining time
-- longer than the rest itself comes from a clock that has gone back, so it is ignored.
local MANY = 5

local function rested(members)
    local now, free, held, wait, notes = now_us(), {}, {}, 0, {}
    local pressed = redis.call('HMGET', marks, unpack(members))
    for i, known in ipairs(redis.call('HMGET', heat, unpack(members))) do
        local step, since = string.match(known or '0:0', '(%d+):(%d+)')
        step = tonumber(step)
        local rest = step > 0 and math.min(longest, 25000 * 2 ^ step) or 0
        local left = tonumber(since) + rest - now
        if left > 0 and left <= rest then
            held[#held + 1] = members[i]
            wait = wait == 0 and left or math.min(wait, left)
        else
            free[#free + 1] = members[i]
            if tonumber(pressed[i] or '0') < MANY then
                step = math.max(step - 1, 1)
            elseif rest < longest then
                step = step + 1
            end
            notes[#notes + 1] = members[i]
            notes[#notes + 1] = step .. ':' .. text(now)
        end
    end
    if #held > 0 then
        redis.call('SADD', queue, unpack(held))
    end
    if #free > 0 then
        redis.call('HDEL', marks, unpack(free))
        if redis.call('HLEN', heat) + #free > 1000 then
            redis.call('DEL', heat)
        end
        redis.call('HSET', heat, unpack(notes))
        redis.call('PEXPIRE', heat, text(2 * longest / 1000))
    end
    return free, wait
end

local is_first = stamp == '0'
if is_first then
    sign_of_life(nodes, node)
end
-- the first page found a long queue, so a later page does not count it again
local backlog = is_first and redis.call('SCARD', queue) or small + count + 1
local live = is_first and live_nodes(nodes, ttl) or tonumber(ARGV[11])
-- other nodes claim between two pages, so each page computes the room that is left
local in_flight = redis.call('SCARD', processing)
local room = live * share - in_flight
if is_first then
    -- many small claims cost more than they gain, and the next process that completes finds more room
    if in_flight > 0 and room < math.min(worth, backlog) then
        room = 0
    end
    local paused, last_stamp, last_cursor = unpack(redis.call('MGET', pause, stamp_key, cursor_key))
    if paused or room <= 0 or backlog == 0 then
        redis.call('DEL', wake)
        return { stamp, '0', backlog, room, live, {}, {}, 0 }
    end
    stamp = stamp_after(last_stamp, WAITS)
    cursor = string.match(last_cursor or '', '^%d+$') and #last_cursor < 20 and last_cursor or '0'
elseif room <= 0 then
    return { stamp, cursor, backlog, 0, live, {}, {}, 0 }
end

local members, wait = take(math.min(count, room), backlog), 0
redis.call('SET', cursor_key, cursor)
if backlog <= small then
    -- A mark after this moment must send a tick or be noticed, because this tick may have made its last claim.
    -- * All waiting members were taken: the wake key stays, and the process of this tick checks again in a moment
    --   (wake-3.lua).
    -- * There was no room for all: the key is deleted, so the next process that completes may send a tick at once.
    -- With a long queue the key stays until the caller publishes its last chunk. Otherwise every process that
    -- completes in the meantime would send another tick.
    if #members == backlog then
        redis.call('SET', wake, '1', 'PX', wake_ttl)
    else
        redis.call('DEL', wake)
    end
    if longest > 0 and #members > 0 then
        members, wait = rested(members)
    end
end
if #members == 0 then
    return { stamp, cursor, backlog, room, live, {}, {}, wait }
end

local tail = ':' .. node .. ':' .. stamp
local tokens = {}
for i = 1, #members do
    tokens[i] = members[i] .. tail
end
redis.call('SADD', processing, unpack(tokens))
if is_first then
    redis.call('SET', stamp_key, stamp)
end

local failed = {}
if redis.call('EXISTS', attempts) == 1 then
    failed = redis.call('HMGET', attempts, unpack(members))
    for i = 1, #members do
        failed[i] = failed[i] or '0'
    end
end
return { stamp, cursor, backlog, room - #members, live, members, failed, wait }
