-- Pauses a queue, unless it is paused already.
--
-- :queue   text  its name in the broker
-- :by      text  the name of the person or token that asked
-- :reason  text
-- returns  its name if it is paused now and was not before; of two callers at once, one gets it
--
-- It waits for a pick that is under way (pick.sql), so that unsend.sql sees the jobs of that pick. What a
-- pick of an older snapshot sends all the same waits after the next pass of a worker.
WITH turn AS MATERIALIZED (
    SELECT pg_advisory_xact_lock(hashtext('harbor_refresh pick'), hashtext(%(queue)s))
)
INSERT INTO execution_pause (queue, by, reason)
SELECT %(queue)s, %(by)s, %(reason)s
FROM turn
ON CONFLICT DO NOTHING
RETURNING queue
