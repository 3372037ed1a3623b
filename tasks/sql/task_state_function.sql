-- The function that reads the state of one task and its job, for task_states.sql.
--
-- of_task bigint
-- returns  one row; none if the task is gone or has no job
--
-- It is a function because each run of a job asks once: PostgreSQL keeps its plan, and to plan the statement again
-- costs more than to run it. PostgreSQL plans it once for a table of any size, so the plan must use the index even while
-- the table is small: pages that an index finds cost nothing here. (After a VACUUM of a table without rows, the plan
-- reads the table until the next ANALYZE, which autovacuum does within a minute.) A forbidden scan (enable_seqscan)
-- would do the same at a cost that makes PostgreSQL compile the plan at every call.
CREATE FUNCTION execution_task_state(
    of_task bigint,
    OUT task_id bigint, OUT job_id text, OUT status text, OUT status_revision bigint, OUT run_count int,
    OUT may_begin int, OUT arguments_revision bigint, OUT database uuid
) RETURNS SETOF record
LANGUAGE plpgsql STABLE
SET random_page_cost = 0 AS $$
#variable_conflict use_column
BEGIN
    RETURN QUERY
    SELECT
        t.id::bigint,
        t.job_id::text,
        t.status::text,
        t.status_revision::bigint,
        t.run_count::int,
        (j.runs_before + j.max_attempts)::int,
        j.arguments_revision::bigint,
        (SELECT database FROM execution_redis_memory)
    FROM task t
    JOIN execution_job j ON j.task_id = t.id
    WHERE t.id = of_task;
END
$$
