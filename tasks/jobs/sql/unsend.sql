-- Has the sent jobs of a paused queue wait: sent -> waiting. Their messages then begin no run.
--
-- :queue text
--
-- A job that another transaction has locked begins or ends at this moment, and is left alone.
UPDATE execution_job
SET state = 'waiting'
WHERE task_id = ANY(ARRAY(
    SELECT task_id FROM execution_job WHERE queue = %(queue)s AND state = 'sent' FOR NO KEY UPDATE SKIP LOCKED
))
