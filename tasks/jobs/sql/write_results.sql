-- Writes the results of successful runs, for the jobs that need them, with the revision of the run.
--
-- :task_ids bigint[]  :revisions bigint[]  :results text[] (JSON)
--
-- The jobs are locked, and each comes once. A later run replaces the result of an earlier run; of one run the first result
-- stays. So writing a result again, late or out of order changes nothing.
UPDATE execution_job j
SET result = g.result::jsonb, result_revision = g.revision
FROM unnest(%(task_ids)s::bigint[], %(revisions)s::bigint[], %(results)s::text[]) AS g (task_id, revision, result)
WHERE j.task_id = g.task_id AND coalesce(j.result_revision < g.revision, TRUE)
