-- Takes a page of Harbor's marks onto the queue: of its keys, and of its set. For the look of a tick, if it is time to
-- look; or for a command, which takes page after page.
--
-- KEYS[1] queue    set   ID:VENDOR
-- KEYS[2] waiting  zset  ID:VENDOR by when it was put on the queue (us)
-- KEYS[3] legacy   hash  cursor, set_cursor: where the last look stopped; paid: until when no look is due (us)
-- ARGV[1] match       the pattern of Harbor's keys, for SCAN
-- ARGV[2] set         Harbor's set; empty if that is the queue itself
-- ARGV[3] count       keys that are looked at, more or less
-- ARGV[4] rate        keys a second, of the looks of all processes together; 0 for a command
-- ARGV[5] cursor      where the page before of the command stopped; 0 for its first page, empty after the last key
-- ARGV[6] set_cursor  the same of the set
-- ARGV[7] is_dry_run  1 to count only
-- ARGV[8..] the forms of a key, as patterns with its id and its vendor
-- returns {members taken, marks left because they cannot be read, how long until the next look is due (us; 0 if it is due
--         at once), cursor and set_cursor of the next page of the command}
--
-- SCAN and the rest are one script, so no program sees a member in both places or in none. A member is put on the queue
-- first: if Redis refuses one of the commands, the mark is still there. Harbor's keys are on the same server, and not
-- under our prefix, so their names are arguments.
--
-- A look costs the time that its keys take at this rate, and no look begins before the one before is paid. So all
-- processes together keep to the rate, however many ticks come. After a pause, a look pays for the last LOOKS_BEHIND_US
-- only. When the scan has come round, the next round begins ROUND_US later, because a small server would be scanned
-- again and again. The cursor is here, so each look continues where the last one stopped, in any process.
--
-- include _clock
-- include _waiting
-- from tasks/pacing.py: HIGHEST_ID, LONGEST_VENDOR, LOOKS_BEHIND_US, ROUND_US, WRONG_CLOCK_US
local queue, waiting, legacy = KEYS[1], KEYS[2], KEYS[3]
local match, set, count, rate = ARGV[1], ARGV[2], tonumber(ARGV[3]), tonumber(ARGV[4])
local cursor, set_cursor, is_dry_run = ARGV[5], ARGV[6], ARGV[7] == '1'
local readers = { unpack(ARGV, 8) }
-- SCAN and SSCAN may find more than they were asked for, and Lua takes some thousand arguments at most.
local AT_ONCE = 1000

-- Whether this is a mark that a claim reads (tasks/queue/members.py). A claim drops a member that cannot be read, so
-- such a mark must stay where it is. Harbor's vendors are ASCII; a mark with any other vendor stays, too. `id` is nil if
-- no pattern has found a member; else it is of digits, and the vendor has no colon.
local function is_readable(id, vendor)
    if not id or #id > 19 or tonumber(id) == 0 or (#id == 19 and id > HIGHEST_ID) then
        return false
    end
    return #vendor <= LONGEST_VENDOR and not string.find(vendor, '[^\32-\126]')
end

local taken, left = 0, 0
local function take(found, patterns, remove)
    local members, marks = {}, {}
    for _, mark in ipairs(found) do
        local id, vendor
        for _, pattern in ipairs(patterns) do
            id, vendor = string.match(mark, pattern)
            if id then
                break
            end
        end
        if is_readable(id, vendor) then
            members[#members + 1] = id .. ':' .. vendor
            marks[#marks + 1] = mark
        else
            left = left + 1
        end
    end
    taken = taken + #members
    for first = 1, is_dry_run and 0 or #members, AT_ONCE do
        local last = math.min(first + AT_ONCE - 1, #members)
        local page = { unpack(members, first, last) }
        if redis.call('SADD', queue, unpack(page)) > 0 then
            note_waiting(waiting, page, false)
        end
        remove(unpack(marks, first, last))
    end
end

local now, paid = now_us(), 0
if rate > 0 then
    local function noted(known)
        return string.match(known or '', '^%d+$') and #known < 20 and known or '0'
    end
    cursor, set_cursor, paid = unpack(redis.call('HMGET', legacy, 'cursor', 'set_cursor', 'paid'))
    cursor, set_cursor, paid = noted(cursor), noted(set_cursor), number(paid)
    if paid > now + WRONG_CLOCK_US then
        paid = now
    end
    if paid > now then
        return { 0, 0, math.ceil(paid - now), '', '' }
    end
    paid = math.max(paid, now - LOOKS_BEHIND_US) + count * 1000000 / rate
end

local found
if cursor ~= '' then
    cursor, found = unpack(redis.call('SCAN', cursor, 'MATCH', match, 'COUNT', count))
    take(found, readers, function(...)
        redis.call('DEL', ...)
    end)
end
if set ~= '' and set_cursor ~= '' then
    set_cursor, found = unpack(redis.call('SSCAN', set, set_cursor, 'COUNT', count))
    take(found, { '^(%d+):([^:%z]+)$' }, function(...)
        redis.call('SREM', set, ...)
    end)
end
if rate > 0 then
    if cursor == '0' then
        paid = math.max(paid, now + ROUND_US)
    end
    redis.call('HSET', legacy, 'cursor', cursor, 'set_cursor', set_cursor, 'paid', text(paid))
    return { taken, left, math.max(0, math.ceil(paid - now)), '', '' }
end
return { taken, left, 0, cursor == '0' and '' or cursor, set_cursor == '0' and '' or set_cursor }
