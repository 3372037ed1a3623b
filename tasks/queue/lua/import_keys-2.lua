-- Takes a page of Harbor's keys onto the queue, for a command that takes all of them.
--
-- KEYS[1] queue    set   ID:VENDOR
-- KEYS[2] waiting  zset  ID:VENDOR by when it was put on the queue (us)
-- ARGV[1] cursor   where the page before stopped; 0 for the first page
-- ARGV[2] match    the pattern of Harbor's keys, for SCAN
-- ARGV[3] count    keys that are looked at, more or less
-- ARGV[4] is_dry_run  1 to count only
-- ARGV[5..] the forms of a key, as patterns with its id and its vendor
-- returns {next cursor, 0 after the last page; members taken; keys that were left because they cannot be read}
--
-- include _legacy
local queue, waiting = KEYS[1], KEYS[2]
local cursor, match, count, is_dry_run = ARGV[1], ARGV[2], tonumber(ARGV[3]), ARGV[4] == '1'

return { take_keys(queue, waiting, cursor, match, count, { unpack(ARGV, 5) }, is_dry_run) }
