-- Tries each command that our scripts use, and changes nothing that lasts.
--
-- KEYS[1]  Harbor's set: a member is put in and taken out again, which no other client sees
-- KEYS[2]  a key of ours that no other process uses
-- returns  what Redis says to each command that it refuses for want of a right: command, message, …
local harbors, scratch = KEYS[1], KEYS[2]
local refused = {}

local function try(command, ...)
    local answer = redis.pcall(command, ...)
    if type(answer) == "table" and answer.err then
        -- any other error is one of the key or of the server, and not of a right
        if string.find(answer.err, "ACL") or string.find(answer.err, "NOPERM") or string.find(answer.err, "can't") then
            refused[#refused + 1] = command
            refused[#refused + 1] = answer.err
        end
        return false
    end
    return true
end

try("TIME")
try("EXISTS", harbors)
try("SCARD", harbors)
try("SISMEMBER", harbors, "-")
try("SMISMEMBER", harbors, "-")
try("SSCAN", harbors, 0, "COUNT", 1)
try("SPOP", harbors, 0)
-- a member that cannot be taken out is not put in
if try("SREM", harbors, "-") and try("SADD", harbors, "-") then
    try("SREM", harbors, "-")
end
if try("DEL", scratch) then
    try("SET", scratch, 1, "PX", 1000)
    try("INCRBY", scratch, 1)
    try("GET", scratch)
    try("MGET", scratch)
    try("MSET", scratch, 1)
    try("PEXPIRE", scratch, 1000)
    try("PTTL", scratch)
    try("DEL", scratch)
    try("HSET", scratch, "a", 1)
    try("HSETNX", scratch, "a", 1)
    try("HGET", scratch, "a")
    try("HMGET", scratch, "a")
    try("HEXISTS", scratch, "a")
    try("HLEN", scratch)
    try("HDEL", scratch, "a")
    try("DEL", scratch)
    try("ZADD", scratch, 1, "a")
    try("ZCARD", scratch)
    try("ZCOUNT", scratch, 0, 1)
    try("ZRANGE", scratch, 0, 0)
    try("ZRANGEBYSCORE", scratch, 0, 1)
    try("ZREVRANGE", scratch, 0, 0)
    try("ZSCORE", scratch, "a")
    try("ZREMRANGEBYRANK", scratch, 1, 1)
    try("ZREMRANGEBYSCORE", scratch, 2, 3)
    try("ZREM", scratch, "a")
    try("DEL", scratch)
end
return refused
