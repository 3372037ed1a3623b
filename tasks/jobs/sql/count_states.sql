-- Counts the jobs that have not ended, by where they are. Each count reads an index that has no other jobs.
--
-- returns  state, count
SELECT
    'waiting',
    (SELECT count(*) FROM execution_job WHERE state = 'waiting' AND NOT unmet AND not_before IS NULL)
    + (SELECT count(*) FROM execution_job WHERE state = 'waiting' AND NOT unmet AND not_before IS NOT NULL)
    + (SELECT count(*) FROM execution_job WHERE state = 'waiting' AND unmet)
UNION ALL
SELECT 'sent', (SELECT count(*) FROM execution_job WHERE state = 'sent')
UNION ALL
SELECT 'running', (SELECT count(*) FROM execution_job WHERE state = 'running')
