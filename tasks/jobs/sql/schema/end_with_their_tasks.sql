-- Ends jobs when their tasks end, whoever says so: the runs themselves, a stop, the API, another program. So `ended` is
-- true of a job as soon as its task is final, without a second step that a crash could leave out. And it decides about
-- the jobs that need these:
--
-- 1. A job that has succeeded meets the need of a job that takes no result, or whose result is there (write_results.sql,
--    in the same transaction). A job that has ended meets the need of one that runs even if it has failed. If nothing
--    else is needed, the turn of that job has come, and its countdown begins.
-- 2. A result is missing, because another program reported the success: the job that takes it ends as Error.
-- 3. A job has not succeeded: all jobs that need it, or need one of those, are stopped, and say which it was.
--
-- A job that has had its turn is left alone: its needs are met, and stay so. `waits_for` is the number of needs that are
-- not met, in every state.
--
-- Tasks are locked in id order, before jobs: those that end by the transaction that ends them (outcomes.py,
-- stop_tasks.sql), and those that are stopped with them here, unless it has done so. A job needs those with a lower id.
-- The jobs that need these are locked in id order here: several transactions may end what one needs. The statements
-- after the lock see what the others have committed.
--
-- It works once for a statement and not once for a row, because ends come in hundreds. The plans are kept, and made for
-- tables of any size: pages that an index finds cost nothing here. OFFSET keeps out a join, which would read all needs.
-- EXCEPT is no join: the plan of a join, made for the first and few rows of a session, would loop over many rows later.
--
-- A migration reads this file: an edit needs a migration.
CREATE OR REPLACE FUNCTION execution_end_jobs() RETURNS trigger
LANGUAGE plpgsql
SET random_page_cost = 0 AS $$
DECLARE
    ended bigint[] := ARRAY(
        SELECT id FROM after WHERE status_code = 3 EXCEPT SELECT id FROM before WHERE status_code = 3
    );
    behind bigint[];
BEGIN
    IF ended = '{}' THEN
        RETURN NULL;
    END IF;

    behind := ARRAY(SELECT DISTINCT job_id FROM execution_need WHERE needed_id = ANY(ended));
    IF behind <> '{}' THEN
        PERFORM  -- the tasks that are stopped with these
        FROM task
        WHERE id IN (
            WITH RECURSIVE line AS (
                SELECT n.job_id
                FROM execution_need n
                JOIN task needed ON needed.id = n.needed_id
                WHERE n.needed_id = ANY(ended) AND NOT n.is_met AND NOT n.even_if_failed AND needed.status <> 'Success'
                UNION
                SELECT n.job_id
                FROM line l
                CROSS JOIN LATERAL (
                    SELECT job_id
                    FROM execution_need
                    WHERE needed_id = l.job_id AND NOT is_met AND NOT even_if_failed
                    OFFSET 0
                ) n
            )
            SELECT job_id FROM line
        )
        ORDER BY id
        FOR NO KEY UPDATE;
    END IF;

    UPDATE execution_job
    SET state = 'ended', node = NULL, process = NULL, check_in = NULL, not_before = NULL
    WHERE task_id = ANY(ended) AND state <> 'ended';

    IF behind = '{}' THEN
        RETURN NULL;
    END IF;
    PERFORM FROM execution_job WHERE task_id = ANY(behind) ORDER BY task_id FOR NO KEY UPDATE;

    WITH met AS (
        UPDATE execution_need n
        SET is_met = TRUE
        FROM execution_job j, execution_job needed, task t
        WHERE
            n.needed_id = ANY(ended) AND NOT n.is_met
            AND j.task_id = n.job_id AND needed.task_id = n.needed_id AND t.id = n.needed_id
            AND CASE t.status
                WHEN 'Success' THEN j.takes = 'nothing' OR needed.result_revision >= t.status_revision
                ELSE n.even_if_failed
            END
        RETURNING n.job_id
    )
    UPDATE execution_job j
    SET
        waits_for = j.waits_for - m.count,
        not_before = CASE
            WHEN j.waits_for > m.count OR j.state <> 'waiting' THEN j.not_before
            ELSE greatest(j.not_before, now() + make_interval(secs => (j.options ->> 'countdown')::float8))
        END
    FROM (SELECT job_id, count(*) FROM met GROUP BY job_id) m
    WHERE j.task_id = m.job_id;

    -- of jobs that are stopped as a whole, those behind are final by now
    IF NOT EXISTS (
        SELECT
        FROM execution_need n
        JOIN task b ON b.id = n.job_id
        WHERE n.needed_id = ANY(ended) AND NOT n.is_met AND b.status_code < 3
    ) THEN
        RETURN NULL;
    END IF;

    UPDATE task t
    SET
        status = 'Error', status_code = 3, update_time = now(), end_time = now(),
        status_message = format('the result of task %s, which it takes, was lost', n.needed_id)
    FROM execution_need n
    JOIN task needed ON needed.id = n.needed_id
    WHERE
        n.needed_id = ANY(ended) AND NOT n.is_met
        AND needed.status = 'Success' AND t.id = n.job_id AND t.status_code < 3;

    WITH RECURSIVE stopped AS (
        SELECT n.job_id, min(n.needed_id) AS cause
        FROM execution_need n
        JOIN task needed ON needed.id = n.needed_id
        JOIN task b ON b.id = n.job_id
        WHERE n.needed_id = ANY(ended) AND NOT n.is_met AND needed.status <> 'Success' AND b.status_code < 3
        GROUP BY n.job_id
        UNION
        SELECT n.job_id, s.cause
        FROM stopped s
        CROSS JOIN LATERAL (
            SELECT job_id FROM execution_need WHERE needed_id = s.job_id AND NOT is_met AND NOT even_if_failed OFFSET 0
        ) n
    )
    UPDATE task t
    SET
        status = 'Stopped', status_code = 3, update_time = now(), end_time = now(),
        status_message = format('it needs %s (task %s), which has ended as %s', c.name, c.task_id, its.status)
    FROM (SELECT job_id, min(cause) AS cause FROM stopped GROUP BY job_id) s
    JOIN execution_job c ON c.task_id = s.cause
    JOIN task its ON its.id = s.cause
    WHERE t.id = s.job_id AND t.status_code < 3;
    RETURN NULL;
END
$$;

CREATE OR REPLACE TRIGGER task_ends_its_job
    AFTER UPDATE ON task
    REFERENCING OLD TABLE AS before NEW TABLE AS after
    FOR EACH STATEMENT
    EXECUTE FUNCTION execution_end_jobs()
