-- The last of the original's four statements: the exact end of an execution that is final.
--
-- :execution_id bigint
--
-- Whoever made it final: of several instances that write at once, each corrects the end, so it is exact if
-- one of them lives. An execution that runs again by now has no end and gets none; one of whose tasks runs
-- again keeps a final status and an end until its report, which has marked it, is refreshed.
UPDATE execution e
SET end_time = coalesce((SELECT max(end_time) FROM task WHERE execution_id = e.id), e.end_time)
WHERE e.id = %(execution_id)s AND e.end_time IS NOT NULL
