-- Since when members wait on the queue. Only MOST_NOTED are noted, because a time for each would double the memory of a
-- long queue. A long queue is claimed evenly, so the oldest of them is the oldest of all until it is nearly drained.
-- from tasks/conf/pacing.py: MOST_NOTED

-- Note that these members wait from now on. Members that may have waited before keep their time.
local function note_waiting(waiting, members, are_new)
    local room = MOST_NOTED - redis.call('ZCARD', waiting)
    if room <= 0 then
        return
    end
    local now, noted = text(now_us()), {}
    for i = 1, math.min(#members, room) do
        noted[2 * i - 1], noted[2 * i] = now, members[i]
    end
    if are_new then
        redis.call('ZADD', waiting, unpack(noted))
    else
        redis.call('ZADD', waiting, 'NX', unpack(noted))
    end
end

local function forget_waiting(waiting, members)
    if redis.call('EXISTS', waiting) == 1 then
        redis.call('ZREM', waiting, unpack(members))
    end
end
