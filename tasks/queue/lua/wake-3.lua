-- Asks whether a tick must be sent.
--
-- KEYS[1] queue  KEYS[2] wake  KEYS[3] pause
-- ARGV[1] ignore_pending_wake  1 to ask even if a tick was sent: it may have been lost with its worker
-- ARGV[2] ignore_empty_queue   1 to ask even if no member waits: marks may wait that only a tick takes onto the queue
-- returns 1 if the caller must send a tick
local queue, wake, pause = KEYS[1], KEYS[2], KEYS[3]
local is_lost, may_be_empty = ARGV[1] == '1', ARGV[2] == '1'

local waits = may_be_empty or redis.call('EXISTS', queue) == 1
return tick_checked(wake, is_lost, waits and pause_left(pause) == 0)
