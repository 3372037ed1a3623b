-- Has the sent jobs of a paused queue wait: sent -> waiting. Their messages then begin no run.
--
-- :queue text
--
-- A job that another transaction has locked is left alone: it begins, or the next pass of a node has it wait.
UPDATE execution_job
SET state = 'waiting'
WHERE task_id = ANY(ARRAY(
    SELECT task_id
    FROM execution_job
    WHERE
        queue = %(queue)s AND state = 'sent' AND EXISTS (SELECT FROM execution_pause WHERE queue = %(queue)s)
    FOR NO KEY UPDATE SKIP LOCKED
))
