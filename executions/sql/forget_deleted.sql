-- Deletes the oldest tombstones, in one bounded batch.
--
-- :before  timestamptz  those from before
-- :at_most int
-- returns  how many were deleted
--
-- Rows that another batch is deleting are skipped, so two batches at once share the work.
WITH old AS (
    SELECT task_id FROM execution_deleted_task
    WHERE at < %(before)s::timestamptz
    ORDER BY at
    LIMIT %(at_most)s
    FOR UPDATE SKIP LOCKED
),
forgotten AS (
    DELETE FROM execution_deleted_task d USING old o WHERE d.task_id = o.task_id RETURNING d.task_id
)
SELECT count(*) FROM forgotten
