-- Reads the nodes, and how many jobs each runs.
--
-- returns  name, running, slots, queues, heard_at, is_suspected
SELECT
    n.name,
    (SELECT count(*) FROM execution_job j WHERE j.state = 'running' AND j.node = n.id)::int,
    n.slots,
    ARRAY(SELECT jsonb_array_elements_text(n.queues)),
    n.heard_at,
    n.suspected_at IS NOT NULL
FROM execution_node n
ORDER BY n.name
