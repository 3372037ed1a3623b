-- Begins the run of a message (begin_function.sql).
--
-- :task_id bigint  :job text  :run int  :node bigint  :process int
-- returns  run, revision, retries, args (with what it takes of others), kwargs, is_needed, may_begin, queue, has_expired.
--          No row if the function begins no run
SELECT * FROM execution_begin_run(%(task_id)s, %(job)s, %(run)s, %(node)s, %(process)s)
