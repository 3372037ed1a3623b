-- Writes the results of successful runs, for the jobs that need them, with the revision of the run.
--
-- :task_ids bigint[]  :revisions bigint[]  :results text[] (JSON)
--
-- The runs are locked (outcomes.py), and end in the same transaction: each has one result, and replaces that of an earlier
-- run.
UPDATE execution_job j
SET result = g.result::jsonb, result_revision = g.revision
FROM unnest(%(task_ids)s::bigint[], %(revisions)s::bigint[], %(results)s::text[]) AS g (task_id, revision, result)
WHERE j.task_id = g.task_id
