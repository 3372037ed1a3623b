-- Ends the search after a death, unless it goes on after a later one.
--
-- KEYS[1] search  hash  see begin_search
-- ARGV[1] death  the last heartbeat of the node, us
-- returns 1 if the search is over
--
-- include _clock
local search, death = KEYS[1], ARGV[1]

if number(redis.call('HGET', search, 'death')) ~= number(death) then
    return 0
end
redis.call('HSET', search, 'due', 0)
return 1
