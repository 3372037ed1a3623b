-- Finds what a node has to look after, so that the statements for it are asked only if there is something to do.
--
-- :node bigint  its own  :ttl float8  seconds
-- returns  processes int[]     where its jobs run
--          is_one_silent bool  some node was not heard for the ttl (tasks/jobs/nodes.py)
--          has_consequences    a failure, or a deadline, has consequences (tasks/jobs/terms.py)
--
-- The order keeps out a scan of the table.
SELECT
    ARRAY(SELECT DISTINCT process FROM execution_job WHERE state = 'running' AND node = %(node)s::bigint),
    EXISTS (SELECT FROM execution_node WHERE heard_at < now() - make_interval(secs => %(ttl)s::float8)),
    EXISTS (SELECT FROM execution_failure)
    OR coalesce(
        (SELECT TRUE FROM execution_terms WHERE deadline <= now() AND NOT is_over ORDER BY deadline LIMIT 1), FALSE
    )
