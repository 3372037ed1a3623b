-- Deletes the oldest ids of received messages, in one bounded batch.
--
-- :before  timestamptz  those from before
-- :at_most int
-- returns  how many were deleted
--
-- Rows that another batch is deleting are skipped, so two batches at once share the work.
WITH old AS (
    SELECT id FROM execution_received_message
    WHERE at < %(before)s::timestamptz
    ORDER BY at
    LIMIT %(at_most)s
    FOR UPDATE SKIP LOCKED
),
forgotten AS (
    DELETE FROM execution_received_message r USING old o WHERE r.id = o.id RETURNING r.id
)
SELECT count(*) FROM forgotten
