-- Fairness: executions take turns. A job has its turn from its start, and pick.sql and admit_function.sql take the
-- jobs of a priority in the order of their turns. A turn is 1,000,000; a job with a weight of 2 takes half a turn.
--
-- execution_turn: the first turn of jobs that are started now: that of the next job in their line. So the jobs of an
-- execution that is started now alternate with those that wait. The line is that of its queue and priority, and of
-- its limit, if it waits for one. The jobs of a tenant come after the last one of that tenant.
--
-- of_queue text  of_priority int  of_name text
-- of_key text     the key of its limit; NULL: it waits for none
-- of_tenant text  NULL: none
--
-- A migration reads this file: an edit needs a migration.
CREATE OR REPLACE FUNCTION execution_turn(of_queue text, of_priority int, of_name text, of_key text, of_tenant text)
RETURNS bigint
LANGUAGE plpgsql
SET random_page_cost = 0 AS $$
DECLARE
    next bigint := 0;
    last bigint := -1000000;
BEGIN
    IF of_key IS NULL THEN
        SELECT turn INTO next
        FROM execution_job
        WHERE
            queue = of_queue AND priority = of_priority
            AND state = 'waiting' AND waits_for = 0 AND not_before IS NULL AND admitted
        ORDER BY turn
        LIMIT 1;
    ELSE
        SELECT turn INTO next
        FROM execution_job
        WHERE
            name = of_name AND limit_key = of_key AND priority = of_priority
            AND state = 'waiting' AND waits_for = 0 AND not_before IS NULL AND NOT admitted
        ORDER BY turn
        LIMIT 1;
    END IF;
    IF of_tenant IS NOT NULL AND of_key IS NULL THEN
        SELECT turn INTO last
        FROM execution_job
        WHERE
            tenant = of_tenant AND queue = of_queue AND priority = of_priority AND limit_key IS NULL
            AND state = 'waiting'
        ORDER BY turn DESC
        LIMIT 1;
    ELSIF of_tenant IS NOT NULL THEN
        SELECT turn INTO last
        FROM execution_job
        WHERE
            tenant = of_tenant AND queue = of_queue AND priority = of_priority AND limit_key = of_key
            AND state = 'waiting' AND name = of_name
        ORDER BY turn DESC
        LIMIT 1;
    END IF;
    RETURN greatest(next, last + 1000000, 0);
END
$$;

-- A job that joins its line later than at its start, because its time has come, the job before it has ended, or its
-- run was lost, joins it near the front, at most 100 turns behind. It does not set the line back, because jobs that are
-- started then would pass all that wait.
CREATE OR REPLACE FUNCTION execution_job_joins_line() RETURNS trigger
LANGUAGE plpgsql AS $$
DECLARE
    next bigint := execution_turn(
        NEW.queue, NEW.priority, NEW.name, CASE WHEN NOT NEW.admitted THEN NEW.limit_key END, NULL
    );
BEGIN
    IF NEW.turn > next THEN
        NEW.turn := least(NEW.turn, next + 100000000);
    ELSE
        NEW.turn := next + NEW.turn % 100000000;
    END IF;
    RETURN NEW;
END
$$;

DROP TRIGGER IF EXISTS job_joins_line ON execution_job;
CREATE TRIGGER job_joins_line
    BEFORE UPDATE OF waits_for, not_before, state ON execution_job
    FOR EACH ROW WHEN (
        NEW.state = 'waiting' AND NEW.waits_for = 0 AND NEW.not_before IS NULL
        AND (OLD.state = 'running' OR OLD.waits_for > 0 OR OLD.not_before IS NOT NULL)
        AND OLD.state <> 'ended'  -- run_again.sql gives those their turns
    )
    EXECUTE FUNCTION execution_job_joins_line()
