-- Begins the run of a message (begin_function.sql).
--
-- :task_id bigint  :job text  :run int  :node bigint  :process int
-- returns  run, revision, retries, args (with what it takes of others), kwargs, is_needed, may_begin, queue, has_expired.
--          No row if the function begins no run
SELECT b.*, EXISTS (
    SELECT
    FROM execution_job
    WHERE
        task_id = %(task_id)s AND CASE jsonb_typeof(options -> 'expires')
            WHEN 'string' THEN (options ->> 'expires')::timestamptz < now()
        END
)
FROM execution_begin_job(%(task_id)s, %(job)s, %(run)s, NULL, %(node)s, %(process)s) b
