-- Reads the limits, with how many jobs have a place in each, and how many wait for it.
--
-- :most int  how many are counted
-- returns  name, concurrency, rate, per, admitted, waiting
SELECT
    l.name,
    l.concurrency,
    l.rate,
    l.per,
    (
        SELECT count(*) FROM (
            SELECT
            FROM execution_job j
            WHERE j.name = l.name AND j.limit_key IS NOT NULL AND admitted AND NOT (state = 'ended')
            LIMIT %(most)s
        ) a
    ),
    (
        SELECT count(*) FROM (
            SELECT
            FROM execution_job j
            WHERE j.name = l.name AND state = 'waiting' AND waits_for = 0 AND not_before IS NULL AND NOT admitted
            LIMIT %(most)s
        ) w
    )
FROM execution_limit l
ORDER BY l.name
