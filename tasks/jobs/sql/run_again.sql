-- Has ended jobs wait for another run: ended -> waiting. Their tasks are reported as Pending in the same transaction.
--
-- :task_ids bigint[]  :revisions bigint[]
--
-- A job that has expired is asked for all the same. A job of a chain is unmet while the task before it has not succeeded.
UPDATE execution_job j
SET
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
    unmet = EXISTS (SELECT FROM task b WHERE b.id = j.follows_id AND b.status <> 'Success')
FROM unnest(%(task_ids)s::bigint[], %(revisions)s::bigint[]) AS g (task_id, revision)
WHERE j.task_id = g.task_id
