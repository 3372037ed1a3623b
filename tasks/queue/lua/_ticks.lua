-- Whether a tick is sent: the transitions of the key `wake`. tasks/pipeline/wakeup.py has the table of its states and
-- events. No other script reads or writes the key; a tick that has ended deletes it (ExecutionQueue.tick_has_ended).
-- from tasks/conf/pacing.py: TICK_SENT, MARKED_SINCE, WAKE_TTL_MS

-- Return 1 if the caller must send a tick, because none is on its way. It is the event `completed` as well.
local function tick_if_none(wake)
    return redis.call('SET', wake, TICK_SENT, 'NX', 'PX', WAKE_TTL_MS) and 1 or 0
end

local function tick_marked(wake)
    local must_send = tick_if_none(wake)
    if must_send == 0 then
        redis.call('SET', wake, MARKED_SINCE, 'XX', 'KEEPTTL')
    end
    return must_send
end

-- `is_lost`: a tick that was sent may be lost. `is_due`: work waits, and the database is not down.
local function tick_checked(wake, is_lost, is_due)
    if not is_lost and redis.call('GET', wake) == TICK_SENT then
        redis.call('DEL', wake)
        return 0
    end
    if not is_due then
        return 0
    end
    redis.call('SET', wake, TICK_SENT, 'PX', WAKE_TTL_MS)
    return 1
end

local function tick_emptied(wake)
    redis.call('SET', wake, TICK_SENT, 'PX', WAKE_TTL_MS)
end

local function tick_ended(wake)
    redis.call('DEL', wake)
end
