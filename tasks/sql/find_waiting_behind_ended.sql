-- Finds jobs without a message that follow a task that is final.
--
-- :most int  how many waiting jobs are read, once or twice
-- :part int  0 to 1008: where the scan begins
-- returns task_id, before_id, before_job, before_status
--
-- A successful run writes into the jobs that follow it (write_results.sql), and an index finds those. This finds the
-- rest: an end that was applied later than it was reported, or by another program. The order of the index spreads
-- neighbours, so with a random start each job is found with the same chance.
WITH waiting AS MATERIALIZED (
    (
        SELECT task_id, follows_id
        FROM execution_job
        WHERE published_at IS NULL AND follows_id IS NOT NULL AND (task_id %% 1009) >= %(part)s::int
        ORDER BY (task_id %% 1009), task_id
        LIMIT %(most)s::int
    )
    UNION ALL
    (
        SELECT task_id, follows_id
        FROM execution_job
        WHERE published_at IS NULL AND follows_id IS NOT NULL AND (task_id %% 1009) < %(part)s::int
        ORDER BY (task_id %% 1009), task_id
        LIMIT %(most)s::int
    )
)
SELECT w.task_id, b.id, b.job_id, b.status
FROM waiting w
JOIN task t ON t.id = w.task_id AND t.status_code < 3
JOIN task b ON b.id = w.follows_id AND b.status_code = 3
ORDER BY w.task_id
