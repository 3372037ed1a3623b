-- Notes in the row of a node that runs of these queues have begun, for resend.sql. Each process does so once a second.
--
-- :node bigint  :queues text[]
UPDATE execution_node
SET began = began || (
    SELECT jsonb_object_agg(queue, extract(epoch FROM now())) FROM unnest(%(queues)s::text[]) AS g (queue)
)
WHERE
    id = %(node)s
    AND (
        SELECT bool_or(coalesce((began ->> queue)::float8, 0) < extract(epoch FROM now()) - 1)
        FROM unnest(%(queues)s::text[]) AS g (queue)
    )
