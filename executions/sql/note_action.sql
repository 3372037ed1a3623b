-- Writes the progress of an action and extends its lease, if the lease is still the holder's.
--
-- :id bigint  :holder text  :lease interval
-- :cursor bigint  the last id that was looked at
-- :changed bigint  :failed bigint  :skipped bigint  :error text   what was done since the last note
-- returns  stop_asked; no row if the lease is not the holder's any more
--
-- Run it last in the transaction of the work: then a process that has lost the lease writes nothing, and the row is
-- locked for a moment only. The cursor never goes back.
UPDATE execution_action
SET
    cursor = greatest(cursor, %(cursor)s),
    changed = changed + %(changed)s,
    failed = failed + %(failed)s,
    skipped = skipped + %(skipped)s,
    done = done + %(changed)s + %(failed)s + %(skipped)s,
    error = CASE WHEN error = '' THEN %(error)s ELSE error END,
    attempts = 0,
    held_until = clock_timestamp() + %(lease)s::interval,
    updated_at = clock_timestamp()
WHERE id = %(id)s AND holder = %(holder)s AND state = 'running'
RETURNING stop_asked
