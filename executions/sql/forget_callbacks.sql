-- Deletes the callbacks of executions that are being deleted. Those for which a delivery is not made yet stay, and are
-- noted as orphans, so that they are still called.
--
-- :execution_ids bigint[]  (the caller holds the locks of the executions)
WITH waiting AS MATERIALIZED (
    SELECT d.execution_id, s.handler
    FROM execution_subscription s
    JOIN execution_delivery d ON d.subscription_id = s.id
    WHERE
        s.kind = 'callback'
        AND d.execution_id = ANY(%(execution_ids)s::bigint[])
        AND d.state <> 'delivered'
),
orphaned AS (
    UPDATE execution_callback c
    SET orphaned_at = now()
    WHERE
        c.execution_id = ANY(%(execution_ids)s::bigint[])
        AND EXISTS (SELECT FROM waiting w WHERE w.execution_id = c.execution_id AND w.handler = c.handler)
)
DELETE FROM execution_callback c
WHERE
    c.execution_id = ANY(%(execution_ids)s::bigint[])
    AND NOT EXISTS (SELECT FROM waiting w WHERE w.execution_id = c.execution_id AND w.handler = c.handler)
