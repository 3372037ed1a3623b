-- Claims members: moves them from the queue to processing, as tokens of one node and one stamp.
--
-- KEYS[1] queue       set     ID:VENDOR
-- KEYS[2] processing  set     ID:VENDOR:NODE:TIMESTAMP
-- KEYS[3] attempts    hash    ID:VENDOR -> how often it failed
-- KEYS[4] nodes       zset    NODE by its last sign of life (us)
-- KEYS[5] wake        string  see wake-3.lua
-- KEYS[6] pause       string  exists while the database is away
-- KEYS[7] stamp       string  the last stamp given
-- KEYS[8] cursor      string  how far claims have gone through the queue
-- KEYS[9] heat        hash    ID:VENDOR -> STEP:US, how long it rests and since when
-- KEYS[10] marks      hash    ID:VENDOR -> how often it was marked while it waited
-- ARGV[1] node
-- ARGV[2] how many at most in this page
-- ARGV[3] how many are worth a claim: with less room than that, and others in flight, there is none
-- ARGV[4] share: how many a node may have in flight; all live nodes together are the limit
-- ARGV[5] node ttl, us
-- ARGV[6] the longest rest of a hot member, us; 0 for none
-- ARGV[7] up to this backlog members are looked at for heat
-- ARGV[8] ms after which a tick on its way is taken for lost
-- ARGV[9] stamp of the page before, if this is another page of one claim; else 0
-- ARGV[10] cursor of the page before; only then
-- ARGV[11] live nodes that the first page told; only then
-- returns {stamp, cursor, backlog before, room left, live nodes, {members}, {attempts}, wait (us)}; backlog and
--         nodes are told by the first page; wait is 0, or how long until a member that is too hot now may be claimed
--
-- A page after the first asks as little as it can: its caller knows the room that is left and tells where
-- the page before stopped.
local queue, processing, attempts, nodes = KEYS[1], KEYS[2], KEYS[3], KEYS[4]
local wake, pause, stamp_key, cursor_key, heat, marks = KEYS[5], KEYS[6], KEYS[7], KEYS[8], KEYS[9], KEYS[10]
local node, count, worth = ARGV[1], tonumber(ARGV[2]), tonumber(ARGV[3])
local share, ttl, longest = tonumber(ARGV[4]), tonumber(ARGV[5]), tonumber(ARGV[6])
local small, wake_ttl, stamp, cursor = tonumber(ARGV[7]), ARGV[8], ARGV[9], ARGV[10]

-- Up to 'some' members, off the queue. SPOP chooses each at random, which costs ten times a page of SSCAN;
-- so a long queue is gone through like a clock, from where the last claim stopped. Nobody is passed over for
-- ever: the hand comes round. The last ones, and what a scan cannot find, are popped.
local function take(some, backlog)
    if backlog > some then
        local page = redis.call('SSCAN', queue, cursor, 'COUNT', some)
        local found = page[2]
        cursor = page[1]
        if #found > some then
            -- Too many: chance tells who waits for the next round. If it were the same ones every time, they
            -- would wait for as long as the others come back before the hand does.
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

-- Who was claimed a moment ago rests for 50 ms. If many marks came while he waited, his next rest is twice as
-- long; if few came, half. So an execution whose reports pour in is refreshed at growing intervals, and all
-- others at once. Returns those that may go, and how long until the first of the others may; those are back
-- on the queue. A rest that is longer than it can be comes from a clock that has gone back since.
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
-- a page after the first goes on through what its forerunner has found to be long
local backlog = is_first and redis.call('SCARD', queue) or small + count + 1
local live = is_first and live_nodes(nodes, ttl) or tonumber(ARGV[11])
-- others claim between two pages, so each page asks for the room that is left
local in_flight = redis.call('SCARD', processing)
local room = live * share - in_flight
if is_first then
    -- no scraps: many small claims cost more than they bring, and the next to complete finds more room
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
    -- Whoever marks after this must be seen to: this tick may be past its last look. If all that waited was
    -- taken, its process looks again in a moment (wake-3.lua); if there was no room for all, whoever completes
    -- may wake the next at once. While a long queue is shared out, the tick stays on its way, or each who
    -- completes meanwhile would send another; the caller forgets it before he hands out his last chunk.
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
