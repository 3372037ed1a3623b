-- Begins the run of a message (begin_function.sql).
--
-- :task_id bigint  :job text  :run int  :node bigint  :process int
-- returns  run, revision, retries, args (with what it takes of others), kwargs, is_needed, may_begin, queue; or no row
SELECT * FROM execution_begin_job(%(task_id)s, %(job)s, %(run)s, NULL, %(node)s, %(process)s)
