-- The last of the original's four statements: the exact end of an execution that has just become final.
--
-- :execution_id bigint  :revision bigint  the one the third statement wrote
--
-- Not if somebody else has refreshed since: the execution may be running again, and its end is theirs.
-- A task that runs again by now leaves the end as it is, for a final status without an end cannot be; its
-- report has marked the execution.
UPDATE execution e
SET end_time = coalesce((SELECT max(end_time) FROM task WHERE execution_id = e.id), e.end_time)
WHERE e.id = %(execution_id)s AND e.revision = %(revision)s
