-- The function that applies one report to the task of a job (report_by_job.sql). The rule is that of apply_reports.sql,
-- for one row; the start of a run is its revision, if that is a moment in unix seconds.
--
-- of_job text        finds the task; '' if only its id is known
-- of_task bigint     finds a task that has no job id yet; of several tasks with this job id, it is taken first
-- new_status text  new_code int  new_revision bigint  new_message text (NULL: none)
-- returns   the id of the task, and the id and vendor type of its execution if the report changed the task, else
--           NULL; no row if there is no such task
--
-- A report that finds its task is counted, as applied or as unchanged.
--
-- Only one row is updated, so no other row is locked and no order matters. If another transaction holds it, the
-- UPDATE waits, and compares again with the row that it then finds.
--
-- It is a function because most requests of a busy system come here: PostgreSQL keeps its plan, and to plan the
-- statement again costs more than to run it. The plan is made for a table of any size: pages that an index finds cost
-- nothing here.
--
-- A migration reads this file: an edit needs a migration.
CREATE FUNCTION report_task_by_job(
    of_job text, of_task bigint, new_status text, new_code int, new_revision bigint, new_message text,
    OUT task_id bigint, OUT changed_execution_id bigint, OUT vendor_type text
) RETURNS SETOF record
LANGUAGE plpgsql
SET random_page_cost = 0 AS $$
#variable_conflict use_column
BEGIN
    RETURN QUERY
    WITH found AS MATERIALIZED (
        SELECT known.id
        FROM (
            SELECT id, CASE WHEN id = of_task THEN 0 ELSE 1 END AS place
            FROM task
            WHERE job_id = of_job AND job_id <> ''
            UNION ALL
            SELECT id, 2
            FROM task
            WHERE id = of_task AND (job_id = '' OR of_job = '')
        ) AS known
        ORDER BY known.place, known.id
        LIMIT 1
    ),
    changed AS (
        UPDATE task t
        SET
            status = new_status,
            status_code = new_code,
            status_revision = new_revision,
            status_message = coalesce(
                new_message,
                CASE WHEN new_status = 'Success' OR new_revision > t.status_revision THEN '' ELSE t.status_message END
            ),
            run_count = t.run_count + CASE WHEN new_revision > t.status_revision THEN 1 ELSE 0 END,
            start_time = CASE
                -- a moment before 2001 is no moment but a count of runs; one that is still to come is a wrong clock
                WHEN new_revision > t.status_revision THEN CASE
                    WHEN new_revision BETWEEN 1000000000 AND extract(EPOCH FROM now())
                        THEN to_timestamp(least(new_revision, 4102444800))  -- it is computed even if it is not used
                    ELSE now()
                END
                WHEN new_code >= 2 THEN coalesce(t.start_time, now())
                ELSE t.start_time
            END,
            update_time = now(),
            end_time = CASE WHEN new_code = 3 THEN now() END
        FROM found f
        WHERE t.id = f.id AND new_revision * 4 + new_code > t.status_revision * 4 + t.status_code
        RETURNING t.execution_id
    )
    SELECT f.id, e.id, e.vendor_type::text
    FROM found f
    LEFT JOIN changed c ON TRUE
    LEFT JOIN execution e ON e.id = c.execution_id
    CROSS JOIN LATERAL add_to_execution_counters(
        ARRAY['reports'],
        ARRAY['result=' || CASE WHEN c.execution_id IS NULL THEN 'unchanged' ELSE 'applied' END || ',source=hook'],
        ARRAY[1]
    );
END
$$
