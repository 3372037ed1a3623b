-- Keeps what runs have left at their end: a result, why it was not kept, or a traceback.
--
-- :task_ids bigint[]  :revisions bigint[]  :results text[] (JSON; NULL: none)  :reasons text[]  :tracebacks text[]
--
-- Each task comes once. The end of a later run replaces that of an earlier run. Of one run the first end stays, as the
-- first final status of a revision does. So keeping an end again, late or out of order changes nothing. Whether the run
-- is the current one is checked when the end is read. A job that was deleted meanwhile has no row.
INSERT INTO execution_job_end (job_id, revision, result, why_not, traceback)
SELECT j.task_id, g.revision, g.result::jsonb, g.why_not, g.traceback
FROM unnest(
    %(task_ids)s::bigint[], %(revisions)s::bigint[], %(results)s::text[], %(reasons)s::text[], %(tracebacks)s::text[]
) AS g (task_id, revision, result, why_not, traceback)
JOIN execution_job j ON j.task_id = g.task_id
ORDER BY j.task_id
ON CONFLICT (job_id) DO UPDATE
SET revision = EXCLUDED.revision, result = EXCLUDED.result, why_not = EXCLUDED.why_not, traceback = EXCLUDED.traceback
WHERE execution_job_end.revision < EXCLUDED.revision
