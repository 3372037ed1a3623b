-- The third of the original's four statements: writes the status, if nobody else has refreshed meanwhile.
--
-- :execution_id bigint  :revision bigint   as the first statement read them
-- :before text          the status the first statement read; it belongs to that revision
-- :status text          what follows from the counts of the second  :final bool  whether it is final
-- returns  the new revision; no row if the execution has another revision by now, or is gone
--
-- It writes whether anything differs or not, as the original does. The revision is what protects from
-- another instance that does the same execution at once: of two who read the same one, the second to write
-- finds it gone, though it may have waited for the first one's lock.
-- The history row is written here too, and not by a statement of its own: neither is ever there without
-- the other. An end that is there is left: another instance may have corrected it, and this one may die before
-- it does the same. A new one is only good enough for the constraint that ties it to the status; the fourth
-- statement corrects it.
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
    INSERT INTO execution_status_change (execution_id, revision, from_status, to_status, at)
    SELECT id, revision, %(before)s, %(status)s, now() FROM changed
)
SELECT revision FROM changed
