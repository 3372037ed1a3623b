-- Has the sent jobs of paused queues wait: sent -> waiting. Their messages then begin no run.
--
-- A job that another transaction has locked is left alone: it begins, or the next pass of a worker has it wait.
UPDATE execution_job
SET state = 'waiting'
WHERE task_id = ANY(ARRAY(
    SELECT task_id
    FROM execution_job
    WHERE state = 'sent' AND queue = ANY(ARRAY(SELECT queue FROM execution_pause))
    FOR NO KEY UPDATE SKIP LOCKED
))
