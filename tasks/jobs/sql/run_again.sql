-- Has ended jobs wait for another run: ended -> waiting. Their tasks are reported as Pending in the same transaction.
--
-- :task_ids bigint[]  :revisions bigint[]  :turns bigint[]
--
-- The jobs are locked. One that has expired is asked for all the same. A need is met if that job has succeeded, or need not.
-- A limit admits them once more. A job that runs even if these have failed, and still waits for others, is locked as well,
-- and waits for these again.
WITH needs AS (
    UPDATE execution_need n
    SET is_met = (t.status_code = 3 AND (n.even_if_failed OR t.status = 'Success'))
    FROM task t
    WHERE n.job_id = ANY(%(task_ids)s::bigint[]) AND t.id = n.needed_id
    RETURNING n.job_id, n.is_met
),
unmet AS (
    UPDATE execution_need n
    SET is_met = FALSE
    FROM execution_job j
    WHERE
        n.needed_id = ANY(%(task_ids)s::bigint[]) AND n.is_met
        AND j.task_id = n.job_id AND j.state = 'waiting' AND j.waits_for > 0
    RETURNING n.job_id
),
waiting AS (
    UPDATE execution_job j
    SET waits_for = j.waits_for + u.count
    FROM (SELECT job_id, count(*) FROM unmet GROUP BY job_id) u
    WHERE j.task_id = u.job_id
)
UPDATE execution_job j
SET
    turn = g.turn,
    admitted = j.limit_key IS NULL,
    state = 'waiting',
    revision = g.revision,
    runs_before = j.run,
    retries = 0,
    not_before = NULL,
    options = CASE
        WHEN jsonb_typeof(j.options -> 'expires') = 'string' AND (j.options ->> 'expires')::timestamptz < now()
            THEN j.options - 'expires'
        ELSE j.options
    END,
    report = NULL,
    kill_at = NULL,
    holds_key = j.unique_key IS NOT NULL,
    waits_for = coalesce(n.unmet, 0)
FROM unnest(%(task_ids)s::bigint[], %(revisions)s::bigint[], %(turns)s::bigint[]) AS g (task_id, revision, turn)
LEFT JOIN (SELECT job_id, count(*) FILTER (WHERE NOT is_met) AS unmet FROM needs GROUP BY job_id) n
    ON n.job_id = g.task_id
WHERE j.task_id = g.task_id
