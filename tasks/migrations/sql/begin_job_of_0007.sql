-- As 0007 made it. Workers of the release before 0013 call it.
--
-- The function that begins a run, for begin.sql: sent -> running.
--
-- of_task bigint  of_job text  of_run int  as the message has them
-- of_revision bigint                       that of the run; NULL: any
-- by_node bigint  by_process int           where it runs; node 0 is a process in eager mode, which no other watches
-- returns  one row; none if the message is a copy, comes late, or is that of another database, and if the node is
--          dead or not known yet. Then nothing has changed, and what has no run is sent again (resend.sql).
--          `args` begin with what the job takes of those that it needs
--
-- It is a function because each run asks once: PostgreSQL keeps its plan. See end_with_their_tasks.sql for the cost.
-- The state is compared as it is so that no plan reads the whole index of jobs that are sent.
--
-- It does not wait until its commit is on disk: a server that crashes may lose the begins of its last moment, and these
-- jobs are sent again. It waits if that run is the last one that the job may begin, if a
-- standby must have each commit, and in eager mode, where the transaction is that of the caller.
CREATE FUNCTION execution_begin_job(
    of_task bigint, of_job text, of_run int, of_revision bigint, by_node bigint, by_process int,
    OUT run int, OUT revision bigint, OUT retries int, OUT args jsonb, OUT kwargs jsonb, OUT is_needed boolean,
    OUT may_begin int, OUT queue text
) RETURNS SETOF record
LANGUAGE plpgsql
SET random_page_cost = 0 AS $$
#variable_conflict use_column
BEGIN
    UPDATE execution_job j
    SET
        state = 'running', run = j.run + 1, node = by_node, process = by_process, begun_at = now(), heard_at = now(),
        check_in = NULL
    FROM task t
    WHERE
        j.task_id = of_task AND j.run = of_run AND (j.state = 'sent') IS NOT FALSE
        AND j.revision = coalesce(of_revision, j.revision)
        AND t.id = of_task AND t.job_id = of_job AND t.status_code < 3
        AND (by_node = 0 OR EXISTS (SELECT FROM execution_node n WHERE n.id = by_node))
    RETURNING
        j.run, j.revision, j.retries,
        CASE WHEN j.takes = 'nothing' THEN j.args ELSE (
            SELECT CASE j.takes
                WHEN 'list' THEN jsonb_build_array(coalesce(jsonb_agg(needed.result ORDER BY n.place), '[]'))
                ELSE coalesce(jsonb_agg(needed.result), '[null]')
            END
            FROM execution_need n
            JOIN execution_job needed ON needed.task_id = n.needed_id
            WHERE n.job_id = of_task
        ) || j.args END,
        j.kwargs, EXISTS (SELECT FROM execution_need n WHERE n.needed_id = of_task),
        j.runs_before + j.max_attempts, j.queue
    INTO run, revision, retries, args, kwargs, is_needed, may_begin, queue;
    IF NOT FOUND THEN
        RETURN;
    END IF;
    IF run < may_begin AND by_node <> 0 AND current_setting('synchronous_standby_names') = '' THEN
        PERFORM set_config('synchronous_commit', 'off', TRUE);
    END IF;
    RETURN NEXT;
END
$$
