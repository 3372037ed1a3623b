-- Opens an action again that was stopped, has failed, or lost its process. It goes on after its cursor.
--
-- :id bigint  :lease interval
-- :origin text  where it runs from now on
-- returns  one row; none if there is no such action, if it is done, or if a process works on it
UPDATE execution_action
SET
    state = 'queued',
    requested_from = %(origin)s,
    stop_asked = FALSE,
    attempts = 0,
    holder = NULL,
    held_until = NULL,
    ended_at = NULL,
    updated_at = clock_timestamp()
WHERE
    id = %(id)s
    AND state <> 'done'
    AND NOT coalesce(held_until BETWEEN clock_timestamp() AND clock_timestamp() + 2 * %(lease)s::interval, FALSE)
RETURNING id
