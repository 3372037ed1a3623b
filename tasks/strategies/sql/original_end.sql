-- The last of the original's four statements: writes the exact end of an execution that is final.
--
-- :execution_id bigint
--
-- If several instances refresh it at once, each corrects the end, so the end is exact if one of them lives. An
-- execution that runs again by now has no end and gets none. If a task runs again and its report is not
-- refreshed yet, the execution keeps its final status and an end until that refresh.
UPDATE execution e
SET end_time = coalesce((SELECT max(end_time) FROM task WHERE execution_id = e.id), e.end_time)
WHERE e.id = %(execution_id)s AND e.end_time IS NOT NULL
