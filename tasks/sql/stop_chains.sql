-- Ends jobs whose turn in their chain will never come, with all jobs that follow them.
--
-- :task_ids bigint[]  the tasks before them
-- :are_lost bool      no worker has a result of these tasks any more
-- returns execution_id, vendor_type of each that ended, to be marked
--
-- 1. The task before it is final and did not succeed: the job is Stopped.
-- 2. That task succeeded, the job takes a result, and no result was written by the current run of that task or a
--    later one. If results are lost, the job is Error.
-- Jobs that follow such a job are Stopped. A job that has a message, or is being published, stays as it is.
--
-- Rows of tasks are locked in id order, then those of jobs, and their contents are read under the lock, so a task that
-- is retried at this moment ends no chain.
WITH RECURSIVE rest AS (
    SELECT j.task_id, j.follows_id AS before_id, j.task_id AS first_id
    FROM execution_job j
    WHERE j.follows_id = ANY(%(task_ids)s::bigint[])
    UNION ALL
    SELECT j.task_id, r.before_id, r.first_id
    FROM execution_job j
    JOIN rest r ON j.follows_id = r.task_id
),
held AS MATERIALIZED (
    SELECT id, status, status_code, status_revision
    FROM task
    WHERE id IN (SELECT task_id FROM rest UNION SELECT before_id FROM rest)
    ORDER BY id
    FOR NO KEY UPDATE
),
first AS MATERIALIZED (
    SELECT j.task_id, b.status = 'Success' AS is_lost
    FROM held b
    JOIN execution_job j ON j.follows_id = b.id
    WHERE
        b.id = ANY(%(task_ids)s::bigint[])
        AND b.status_code = 3
        AND j.published_at IS NULL
        AND (
            b.status <> 'Success'
            OR (
                %(are_lost)s::bool
                AND j.takes_result
                AND (j.handed_on_revision IS NULL OR j.handed_on_revision < b.status_revision)
            )
        )
    FOR NO KEY UPDATE OF j SKIP LOCKED
),
ending AS (
    SELECT r.task_id, bool_or(f.is_lost AND r.task_id = f.task_id) AS is_lost
    FROM rest r
    JOIN first f ON f.task_id = r.first_id
    JOIN held h ON h.id = r.task_id
    WHERE h.status_code < 3
    GROUP BY r.task_id
),
changed AS (
    UPDATE task t
    SET
        status = CASE WHEN e.is_lost THEN 'Error' ELSE 'Stopped' END,
        status_code = 3,
        status_message = CASE
            WHEN e.is_lost THEN 'the result of the job before it was lost'
            ELSE 'a job before it in its chain did not succeed'
        END,
        update_time = now(),
        end_time = now()
    FROM ending e
    WHERE t.id = e.task_id
    RETURNING t.execution_id
)
SELECT e.id, e.vendor_type
FROM execution e
WHERE e.id IN (SELECT execution_id FROM changed)
