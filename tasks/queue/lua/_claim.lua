-- How members are taken off the queue and held, for claim and claim_more.
-- include _clock
-- include _tokens
-- include _waiting

-- Take up to `most` members off the queue, by scanning it from `cursor`. Returns the members and the next cursor.
-- SPOP chooses each member at random, which costs ten times as much as a page of SSCAN. So a long queue is scanned in
-- order, and the cursor wraps around, so every member is claimed eventually. A scan that finds nothing is followed by
-- a pop.
local function scan(queue, waiting, cursor, most)
    local next_cursor, found = unpack(redis.call('SSCAN', queue, cursor, 'COUNT', most))
    if #found == 0 then
        found = redis.call('SPOP', queue, most)
        if #found > 0 then
            forget_waiting(waiting, found)
        end
        return found, next_cursor
    end
    if #found > most then
        -- SSCAN found too many. A random start decides which members wait for the next round. With a fixed start the
        -- same members could wait forever, if the members before them return before the cursor does.
        local first, chosen = now_us() % #found, {}
        for i = 1, most do
            chosen[i] = found[(first + i) % #found + 1]
        end
        found = chosen
    end
    redis.call('SREM', queue, unpack(found))
    forget_waiting(waiting, found)
    return found, next_cursor
end

-- Record that these members are claimed. Returns how often each of them failed; nothing if no member failed ever.
local function hold(processing, attempts, members, suffix)
    redis.call('SADD', processing, unpack(tokens_of(members, suffix)))
    if redis.call('EXISTS', attempts) == 0 then
        return {}
    end
    local failures = redis.call('HMGET', attempts, unpack(members))
    for i = 1, #members do
        failures[i] = text(number(failures[i]))
    end
    return failures
end
