-- Finds no execution: a running Harbor has no jobs, and to look would read the tasks of its newest executions.
--
-- returns  id of the execution
SELECT task_id FROM execution_job WHERE FALSE
