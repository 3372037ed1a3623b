-- Writes the deliveries that tell the callbacks of an execution of its first failed task.
--
-- :execution_id bigint  (the caller has locked it)
-- returns  id of each delivery
--
-- No status has changed, so the delivery has the same status twice, and the revision 0, which no change has: it comes
-- before those of the ends. A callback without statuses asks for this one.
INSERT INTO execution_delivery (
    subscription_id, execution_id, vendor_type, revision, from_status, to_status, changed_at
)
SELECT s.id, e.id, e.vendor_type, 0, 'Running', 'Running', now()
FROM execution e
JOIN execution_subscription s ON s.kind = 'callback' AND s.enabled AND s.missing_since IS NULL
WHERE
    e.id = %(execution_id)s
    AND EXISTS (
        SELECT FROM execution_callback c
        WHERE c.execution_id = e.id AND c.handler = s.handler AND c.statuses = '{}'
    )
ORDER BY s.id
ON CONFLICT DO NOTHING
RETURNING id
