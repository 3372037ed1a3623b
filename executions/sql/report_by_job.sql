-- Applies one report to the task of a job, in one statement. The rule is that of apply_reports.sql, for one row; the
-- start of a run is its revision, if that is a moment in unix seconds.
--
-- :job_id   text    finds the task; '' if only its id is known
-- :task_id  bigint  finds a task that has no job id yet; of several tasks with this job id, it is taken first
-- :status text  :code int  :revision bigint  :message text (NULL: none)
-- returns   the id of the task, and the id and vendor type of its execution if the report changed the task, else
--           NULL; no row if there is no such task
--
-- Only one row is updated, so no other row is locked and no order matters. If another transaction holds it, the
-- UPDATE waits, and compares again with the row that it then finds.
WITH found AS MATERIALIZED (
    SELECT known.id
    FROM (
        SELECT id, CASE WHEN id = %(task_id)s::bigint THEN 0 ELSE 1 END AS place
        FROM task
        WHERE job_id = %(job_id)s AND job_id <> ''
        UNION ALL
        SELECT id, 2
        FROM task
        WHERE id = %(task_id)s::bigint AND (job_id = '' OR %(job_id)s = '')
    ) AS known
    ORDER BY known.place, known.id
    LIMIT 1
),
changed AS (
    UPDATE task t
    SET
        status = %(status)s,
        status_code = %(code)s,
        status_revision = %(revision)s::bigint,
        status_message = coalesce(
            %(message)s,
            CASE WHEN %(status)s = 'Success' OR %(revision)s::bigint > t.status_revision THEN '' ELSE t.status_message END
        ),
        run_count = t.run_count + CASE WHEN %(revision)s::bigint > t.status_revision THEN 1 ELSE 0 END,
        start_time = CASE
            -- a moment before 2001 is no moment but a count of runs; one that is still to come is a wrong clock
            WHEN %(revision)s::bigint > t.status_revision THEN CASE
                WHEN %(revision)s::bigint BETWEEN 1000000000 AND extract(EPOCH FROM now())
                    THEN to_timestamp(least(%(revision)s::bigint, 4102444800))  -- it is computed even if it is not used
                ELSE now()
            END
            WHEN %(code)s >= 2 THEN coalesce(t.start_time, now())
            ELSE t.start_time
        END,
        update_time = now(),
        end_time = CASE WHEN %(code)s = 3 THEN now() END
    FROM found f
    WHERE t.id = f.id AND %(revision)s::bigint * 4 + %(code)s > t.status_revision * 4 + t.status_code
    RETURNING t.execution_id
)
SELECT f.id, e.id, e.vendor_type
FROM found f
LEFT JOIN changed c ON TRUE
LEFT JOIN execution e ON e.id = c.execution_id
