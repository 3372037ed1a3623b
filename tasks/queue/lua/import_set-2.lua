-- Moves a page of Harbor's set onto the queue, for a command that moves all of it.
--
-- KEYS[1] queue    set   ID:VENDOR
-- KEYS[2] waiting  zset  ID:VENDOR by when it was put on the queue (us)
-- ARGV[1] cursor   where the page before stopped; 0 for the first page
-- ARGV[2] set      Harbor's set
-- ARGV[3] count    members of a page, more or less
-- ARGV[4] is_dry_run  1 to count only
-- returns {next cursor, 0 after the last page; members moved; members that were left because they cannot be read}
--
-- include _legacy
local queue, waiting = KEYS[1], KEYS[2]
local cursor, set, count, is_dry_run = ARGV[1], ARGV[2], tonumber(ARGV[3]), ARGV[4] == '1'

return { take_set(queue, waiting, set, cursor, count, is_dry_run) }
