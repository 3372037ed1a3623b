-- Applies one report to the task of a job, in one statement (report_by_job_function.sql).
--
-- :job_id text  :task_id bigint  :status text  :code int  :revision bigint  :message text (NULL: none)
-- returns   the id of the task, and the id and vendor type of its execution if the report changed the task, else
--           NULL; no row if there is no such task
SELECT task_id, changed_execution_id, vendor_type
FROM report_task_by_job(
    %(job_id)s, %(task_id)s::bigint, %(status)s, %(code)s::int, %(revision)s::bigint, %(message)s
)
