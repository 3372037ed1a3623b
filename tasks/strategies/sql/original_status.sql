-- The third of the original's four statements: writes the status, if no other process has refreshed meanwhile.
--
-- :execution_id bigint  :revision bigint   as the first statement read them
-- :before text          the status the first statement read; it belongs to that revision
-- :status text          the status that the counts of the second statement give  :final bool  whether it is
-- final
-- returns  the new revision; no row if the execution has another revision by now, or is deleted
--
-- It writes whether anything differs or not, as the original does. The revision protects from another instance
-- that refreshes the same execution at once: if two have read the same revision, the second write finds a newer
-- one, even if it waited for the lock of the first. The same statement writes the history row, so that neither
-- row exists without the other. An existing end stays, because another instance may have corrected it, and this
-- instance may die before it does the same. A new end only satisfies the constraint that ties it to the status;
-- the fourth statement corrects it.
WITH changed AS (
    UPDATE execution e
    SET
        status = %(status)s,
        end_time = CASE WHEN %(final)s THEN coalesce(e.end_time, now()) END,
        revision = e.revision + 1,
        update_time = now()
    WHERE e.id = %(execution_id)s AND e.revision = %(revision)s
    RETURNING e.id, e.revision
),
history AS (
    INSERT INTO execution_status_change (execution_id, revision, from_status, to_status, at, told)
    SELECT
        id, revision, %(before)s, %(status)s, now(),
        NOT EXISTS (SELECT FROM execution_subscription WHERE enabled AND missing_since IS NULL)
    FROM changed
)
SELECT revision FROM changed
