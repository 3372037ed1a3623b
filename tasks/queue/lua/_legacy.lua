-- How the marks that Harbor has written are taken onto the queue. Its keys are on the same server, and not under our
-- prefix, so their patterns and names are arguments.
-- include _waiting
-- from tasks/pacing.py: HIGHEST_ID, LONGEST_VENDOR

-- SCAN and SSCAN may find more than they were asked for, and Lua takes some thousand arguments at most.
local AT_ONCE = 1000

-- Put members on the queue. What is there already stays as it is.
local function enqueue(queue, waiting, members)
    if redis.call('SADD', queue, unpack(members)) > 0 then
        note_waiting(waiting, members, false)
    end
end

-- Whether this is a mark that a claim reads (tasks/queue/members.py). A claim drops a member that cannot be read, so
-- such a mark must stay where it is. Harbor's vendors are ASCII; a mark with any other vendor stays, too. `id` is nil if
-- no pattern has found a member; else it is of digits, and the vendor has no colon.
local function is_readable(id, vendor)
    if not id or #id > 19 or tonumber(id) == 0 or (#id == 19 and id > HIGHEST_ID) then
        return false
    end
    return #vendor <= LONGEST_VENDOR and not string.find(vendor, '[^\32-\126]')
end

-- Look at a page of the server's keys from `cursor` on. For each key of Harbor, put its member on the queue and delete
-- the key. `readers` are the forms of a key, as patterns with the id and the vendor. A key that none of them reads, or
-- whose member cannot be read, stays. With `is_dry_run` nothing is changed. Returns the next cursor, how many members
-- were taken, and how many keys were left.
--
-- SCAN and the rest are one script, so no program sees a member in both places or in none. The member is put on the queue
-- first: if Redis refuses one of the commands, the key is still there.
local function take_keys(queue, waiting, cursor, match, count, readers, is_dry_run)
    local next_cursor, found = unpack(redis.call('SCAN', cursor, 'MATCH', match, 'COUNT', count))
    local members, keys, left = {}, {}, 0
    for _, key in ipairs(found) do
        local id, vendor
        for _, reader in ipairs(readers) do
            id, vendor = string.match(key, reader)
            if id then
                break
            end
        end
        if is_readable(id, vendor) then
            members[#members + 1] = id .. ':' .. vendor
            keys[#keys + 1] = key
        else
            left = left + 1
        end
    end
    if is_dry_run then
        return next_cursor, #keys, left
    end
    for first = 1, #keys, AT_ONCE do
        local last = math.min(first + AT_ONCE - 1, #keys)
        enqueue(queue, waiting, { unpack(members, first, last) })
        redis.call('DEL', unpack(keys, first, last))
    end
    return next_cursor, #keys, left
end

-- Move a page of Harbor's set onto the queue, from `cursor` on. Members that cannot be read stay. `is_dry_run`
-- and what it returns are as in take_keys.
local function take_set(queue, waiting, set, cursor, count, is_dry_run)
    local next_cursor, found = unpack(redis.call('SSCAN', set, cursor, 'COUNT', count))
    local members, left = {}, 0
    for _, member in ipairs(found) do
        if is_readable(string.match(member, '^(%d+):([^:%z]+)$')) then
            members[#members + 1] = member
        else
            left = left + 1
        end
    end
    if is_dry_run then
        return next_cursor, #members, left
    end
    for first = 1, #members, AT_ONCE do
        local page = { unpack(members, first, math.min(first + AT_ONCE - 1, #members)) }
        enqueue(queue, waiting, page)
        redis.call('SREM', set, unpack(page))
    end
    return next_cursor, #members, left
end
