-- Deletes the oldest deliveries that ended before a moment.
--
-- :before timestamptz  :most int
-- returns  how many
WITH old AS (
    SELECT id FROM execution_delivery
    WHERE state <> 'pending' AND ended_at < %(before)s
    ORDER BY ended_at
    LIMIT %(most)s
    FOR UPDATE SKIP LOCKED
),
gone AS (
    DELETE FROM execution_delivery d USING old WHERE d.id = old.id RETURNING d.id
)
SELECT count(*) FROM gone
