-- As 0002 made it; 0007 replaces it.
--
-- Ends a job when its task ends, whoever says so: the run itself, a stop, the API, another program. So `ended` is true
-- of a job as soon as its task is final, without a second step that a crash could leave out. And it decides about the
-- jobs that follow it in a chain:
--
-- 1. The task has succeeded: the turn of the next job has come, if it takes no result or has that of this run
--    (write_results.sql, in the same transaction). Its countdown begins.
-- 2. The next job takes a result, and this run has left none, because another program reported its success: Error.
-- 3. The task has not succeeded: all jobs behind it are stopped.
--
-- A job that has had its turn already is left alone. Tasks are locked in id order by the transaction that ends them
-- (hold_runs.sql, stop_tasks.sql), and a job follows one with a lower id.
--
-- The plans are kept, and made once for tables of any size: pages that an index finds cost nothing here. `IS NOT FALSE`
-- keeps out the index of all jobs that are unmet, and OFFSET and ARRAY keep out joins: these would read all chains.
CREATE FUNCTION execution_end_job() RETURNS trigger
LANGUAGE plpgsql
SET random_page_cost = 0 AS $$
BEGIN
    UPDATE execution_job
    SET state = 'ended', node = NULL, process = NULL, check_in = NULL, not_before = NULL
    WHERE task_id = NEW.id AND state <> 'ended';

    -- of a chain that is stopped as a whole, the next task is final by now, and so each row looks at one other
    IF NOT EXISTS (
        SELECT
        FROM execution_job j
        JOIN task t ON t.id = j.task_id
        WHERE j.follows_id = NEW.id AND j.state = 'waiting' AND j.unmet IS NOT FALSE AND t.status_code < 3
    ) THEN
        RETURN NULL;
    END IF;

    IF NEW.status = 'Success' THEN
        UPDATE execution_job
        SET unmet = FALSE, not_before = coalesce(not_before, now() + make_interval(secs => (options ->> 'countdown')::float8))
        WHERE
            follows_id = NEW.id AND state = 'waiting' AND unmet IS NOT FALSE
            AND (NOT takes_result OR handed_on_revision >= NEW.status_revision);

        UPDATE task
        SET
            status = 'Error', status_code = 3, update_time = now(), end_time = now(),
            status_message = 'the result of the job before it was lost'
        WHERE
            status_code < 3
            AND id = ANY(ARRAY(
                SELECT task_id FROM execution_job
                WHERE follows_id = NEW.id AND state = 'waiting' AND unmet IS NOT FALSE
            ));
    ELSE
        WITH RECURSIVE behind AS (
            SELECT task_id FROM execution_job WHERE follows_id = NEW.id AND state = 'waiting' AND unmet IS NOT FALSE
            UNION
            SELECT j.task_id
            FROM behind b
            CROSS JOIN LATERAL (SELECT task_id FROM execution_job WHERE follows_id = b.task_id OFFSET 0) j
        )
        UPDATE task
        SET
            status = 'Stopped', status_code = 3, update_time = now(), end_time = now(),
            status_message = 'a job before it in its chain did not succeed'
        WHERE status_code < 3 AND id = ANY(ARRAY(SELECT task_id FROM behind));
    END IF;
    RETURN NULL;
END
$$;

CREATE TRIGGER task_ends_its_job
    AFTER UPDATE OF status_code ON task
    FOR EACH ROW WHEN (NEW.status_code = 3 AND OLD.status_code < 3)
    EXECUTE FUNCTION execution_end_job()
