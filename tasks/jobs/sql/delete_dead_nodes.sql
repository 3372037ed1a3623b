-- Deletes the nodes that are suspected for the ttl and silent still, and suspects those that are silent for the ttl.
-- Two looks, because after a pause of the database every node is silent: then a heartbeat (beat.sql), which ends the
-- suspicion, comes before the second.
--
-- :ttl float8  seconds
-- returns  name of each node that is dead
WITH dead AS (
    DELETE FROM execution_node
    WHERE suspected_at < now() - make_interval(secs => %(ttl)s)
    RETURNING name
),
suspects AS (
    UPDATE execution_node
    SET suspected_at = now()
    WHERE suspected_at IS NULL AND heard_at < now() - make_interval(secs => %(ttl)s)
)
SELECT name FROM dead
