-- Adds an event for each node that died, in the minute of its last heartbeat. A death that is known changes nothing:
-- the name of a node is never used again, and only deaths of the last hour come here.
--
-- :nodes text[]   :silent float[]  how long each of them has been silent, in seconds
INSERT INTO service_event (minute, kind, subject, count, last_at)
SELECT
    date_trunc('minute', now() - make_interval(secs => silent)),
    'node_died',
    node,
    1,
    now() - make_interval(secs => silent)
FROM unnest(%(nodes)s::text[], %(silent)s::float[]) AS dead (node, silent)
WHERE NOT EXISTS (
    SELECT FROM service_event AS known
    WHERE
        known.kind = 'node_died'
        AND known.subject = node
        AND known.minute > now() - interval '2 hours'
)
ON CONFLICT (minute, kind, subject) DO NOTHING
