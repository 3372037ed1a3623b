-- Notes that a task has failed, if its execution has terms that say what to do then (tasks/jobs/terms.py). So
-- the note is there as soon as the failure is, by whatever way it is reported, and a crash leaves out neither. A
-- child that has failed is a task of its parent that has failed.
--
-- It inserts and locks nothing: two transactions that end tasks of two executions do not wait for each other. It runs
-- with the rights of its owner, because a core with a role of its own has none on these tables.
--
-- A migration reads this file: an edit needs a migration.
CREATE FUNCTION execution_note_failure() RETURNS trigger
LANGUAGE plpgsql
SECURITY DEFINER
SET search_path FROM CURRENT
SET random_page_cost = 0 AS $$
BEGIN
    INSERT INTO execution_failure (execution_id)
    SELECT execution_id
    FROM execution_terms
    WHERE
        execution_id = NEW.execution_id
        AND (stops_on_failure OR (tells_first_failure AND first_failed_at IS NULL));
    RETURN NULL;
END
$$;

CREATE TRIGGER task_notes_its_failure
    AFTER UPDATE OF status_code ON task
    FOR EACH ROW WHEN (NEW.status = 'Error' AND NEW.status_code = 3 AND OLD.status_code < 3)
    EXECUTE FUNCTION execution_note_failure()
