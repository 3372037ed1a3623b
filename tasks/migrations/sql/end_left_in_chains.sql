-- Ends jobs of chains that nothing would free any more: the job before them has ended before they were taken over
-- (take_over_jobs.sql). Those behind them end with them (end_with_their_tasks.sql).
UPDATE task t
SET
    status = CASE b.status WHEN 'Success' THEN 'Error' ELSE 'Stopped' END,
    status_code = 3,
    update_time = now(),
    end_time = now(),
    status_message = CASE b.status
        WHEN 'Success' THEN 'the result of the job before it was lost'
        ELSE 'a job before it in its chain did not succeed'
    END
FROM execution_job j
JOIN task b ON b.id = j.follows_id
WHERE j.task_id = t.id AND j.state = 'waiting' AND j.unmet AND t.status_code < 3 AND b.status_code = 3
