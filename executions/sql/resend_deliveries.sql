-- Makes dead deliveries pending again, with a new age and their attempts counted from zero.
--
-- :subscription bigint (NULL: any)  :after bigint  only higher ids  :most int
-- returns  how many; the highest id
WITH dead AS MATERIALIZED (
    SELECT id
    FROM execution_delivery
    WHERE
        state = 'dead' AND id > %(after)s
        AND (%(subscription)s::bigint IS NULL OR subscription_id = %(subscription)s)
    ORDER BY id
    LIMIT %(most)s
    FOR NO KEY UPDATE
),
sent AS (
    UPDATE execution_delivery d
    SET state = 'pending', attempts = 0, next_at = now(), ended_at = NULL, created_at = now()
    FROM dead
    WHERE d.id = dead.id
    RETURNING d.id
)
SELECT count(*), max(id) FROM sent
