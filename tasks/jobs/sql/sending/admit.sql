-- Admits jobs with a limit: admit_function.sql says what it takes and returns.
SELECT * FROM execution_admit(%(task_ids)s::bigint[])
