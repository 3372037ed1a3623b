-- Writes the deliveries of the next untold status changes, and marks these changes as told.
--
-- :most int  how many changes at most
-- returns    how many changes were told
--
-- The changes are locked in id order, as a deletion locks them. If another transaction has locked one of them, the
-- statement fails at once: to skip that change would break the order. An execution's revisions are written under its
-- row lock, so revision r + 1 is never visible without r, and has the higher id. So its deliveries are written in order.
--
-- A flag tells what is done, and not a watermark over the ids, because a row with a lower id may commit later.
WITH untold AS MATERIALIZED (
    SELECT id, execution_id, revision, from_status, to_status, at
    FROM execution_status_change
    WHERE NOT told
    ORDER BY id
    LIMIT %(most)s
    FOR NO KEY UPDATE NOWAIT
),
written AS (
    INSERT INTO execution_delivery (
        subscription_id, execution_id, vendor_type, revision, from_status, to_status, changed_at
    )
    SELECT s.id, u.execution_id, e.vendor_type, u.revision, u.from_status, u.to_status, u.at
    FROM untold u
    JOIN execution e ON e.id = u.execution_id
    JOIN execution_subscription s ON s.enabled AND s.missing_since IS NULL
    WHERE
        (s.vendor_types = '{}' OR e.vendor_type = ANY(s.vendor_types))
        AND (s.statuses = '{}' OR u.to_status = ANY(s.statuses))
        AND (s.triggers = '{}' OR e.trigger = ANY(s.triggers))
        AND (
            s.kind <> 'callback'
            OR EXISTS (
                SELECT FROM execution_callback c
                WHERE
                    c.execution_id = u.execution_id AND c.handler = s.handler AND u.to_status = ANY(c.statuses)
            )
        )
    ORDER BY u.id, s.id
    ON CONFLICT DO NOTHING
),
marked AS (
    UPDATE execution_status_change c
    SET told = TRUE
    FROM untold u
    WHERE c.id = u.id
    RETURNING c.id
)
SELECT count(*) FROM marked
