-- Keeps what runs have left at their end: a result, why it was not kept, or a traceback.
--
-- :task_ids bigint[]  :revisions bigint[]  :results text[] (JSON; NULL: none)  :reasons text[]  :tracebacks text[]
--
-- The runs are held (hold_runs.sql), and end in the same transaction: each has one end, and replaces that of an earlier run.
-- Whether the run is the current one is checked when the end is read.
INSERT INTO execution_job_end (job_id, revision, result, why_not, traceback)
SELECT task_id, revision, result::jsonb, why_not, traceback
FROM unnest(
    %(task_ids)s::bigint[], %(revisions)s::bigint[], %(results)s::text[], %(reasons)s::text[], %(tracebacks)s::text[]
) AS g (task_id, revision, result, why_not, traceback)
ON CONFLICT (job_id) DO UPDATE
SET revision = EXCLUDED.revision, result = EXCLUDED.result, why_not = EXCLUDED.why_not, traceback = EXCLUDED.traceback
