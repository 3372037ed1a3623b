-- The rollup rule on Harbor's tables: by words. A bulk stop of Harbor writes the word Stopped and leaves the code 0.
--
-- ids bigint[]  the executions; one without tasks has no row, and neither has one of whose tasks no word is known,
--               because Harbor would leave its status, too
-- returns   execution_id, status, end_time: what Harbor's own refresh writes
--
-- A word that is not known is no unfinished task, and says nothing beside others. An end in the year 1, which is how
-- Harbor writes that there is none, is written as Harbor writes it.
--
-- The text of the body, and not BEGIN ATOMIC: so the function depends on no column, and Harbor may alter their types.
-- Inlined like the other (../execution_rollup.sql), and answered by the index of task(execution_id).
--
-- A migration reads this file: an edit needs a migration.
CREATE FUNCTION execution_rollup(ids bigint[])
RETURNS TABLE (execution_id bigint, status text, end_time timestamp)
LANGUAGE sql STABLE AS $$
    SELECT
        t.execution_id::bigint,
        CASE
            WHEN bool_or(t.status IN ('Pending', 'Scheduled', 'Running')) THEN 'Running'
            WHEN bool_or(t.status = 'Error') THEN 'Error'
            WHEN bool_or(t.status = 'Stopped') THEN 'Stopped'
            ELSE 'Success'
        END,
        CASE WHEN bool_or(t.status IN ('Pending', 'Scheduled', 'Running')) THEN NULL ELSE max(t.end_time) END
    FROM task t
    WHERE t.execution_id = ANY(ids)
    GROUP BY t.execution_id
    HAVING bool_or(t.status IN ('Pending', 'Scheduled', 'Running', 'Error', 'Stopped', 'Success'))
$$
