-- Writes the results of successful runs into the jobs that follow them, with the revision of the run.
--
-- :task_ids bigint[]  :revisions bigint[]  :results text[] (JSON)
--
-- Each task comes once. A job that takes no result gets only the revision, which says that its turn may have come. A
-- later run replaces the result of an earlier run until the following job has a message. Of one run the first result
-- stays. So writing a result again, late or out of order changes nothing. Whether the run is the current one is checked
-- when the following job is published.
WITH following AS MATERIALIZED (
    SELECT j.task_id, g.revision, g.result
    FROM execution_job j
    JOIN unnest(%(task_ids)s::bigint[], %(revisions)s::bigint[], %(results)s::text[]) AS g (task_id, revision, result)
        ON g.task_id = j.follows_id
    WHERE j.state = 'waiting' AND j.unmet AND (j.handed_on_revision IS NULL OR j.handed_on_revision < g.revision)
    ORDER BY j.task_id
    FOR NO KEY UPDATE OF j
)
UPDATE execution_job j
SET
    handed_on = CASE WHEN j.takes_result THEN f.result::jsonb END,
    handed_on_revision = f.revision
FROM following f
WHERE j.task_id = f.task_id
