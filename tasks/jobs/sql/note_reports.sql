-- Notes what is to be reported of jobs, which the transaction has locked. A run that has ended ends its job.
--
-- :task_ids bigint[]  :reports text[] (JSON)  :are_final bool[]
-- returns  task_id, job, report
UPDATE execution_job j
SET
    report = g.report::jsonb,
    state = CASE WHEN g.is_final THEN 'ended' ELSE j.state END,
    node = CASE WHEN NOT g.is_final THEN j.node END,
    process = CASE WHEN NOT g.is_final THEN j.process END
FROM unnest(%(task_ids)s::bigint[], %(reports)s::text[], %(are_final)s::bool[]) AS g (task_id, report, is_final)
JOIN task t ON t.id = g.task_id
WHERE j.task_id = g.task_id
RETURNING j.task_id, t.job_id, j.report
