-- Begins the run of a message: begin_function.sql says what it takes and returns.
SELECT * FROM execution_begin_run(%(task_id)s, %(job)s, %(run)s, %(node)s, %(process)s)
