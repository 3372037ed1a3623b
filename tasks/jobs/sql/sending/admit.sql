-- Admits jobs with a limit (admit_function.sql).
--
-- :task_ids bigint[]  tasks whose keys are looked at; NULL: all keys
-- returns  queue of each job that is admitted, once
SELECT * FROM execution_admit(%(task_ids)s::bigint[])
