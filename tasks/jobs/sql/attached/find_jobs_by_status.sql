-- Finds no job: a running Harbor has none, and to look would read its tasks.
--
-- returns  task_id
SELECT task_id FROM execution_job WHERE FALSE
