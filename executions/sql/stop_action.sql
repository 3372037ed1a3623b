-- Stops an action: at once if no process works on it, else at the end of the page in progress.
--
-- :id bigint  :lease interval
-- returns  state; no row if there is no such action, or if it has ended
--
-- A process whose lease has expired and that goes on finds the action ended, and writes nothing.
UPDATE execution_action
SET
    stop_asked = TRUE,
    state = CASE WHEN is_held THEN 'running' ELSE 'stopped' END,
    holder = CASE WHEN is_held THEN holder END,
    held_until = CASE WHEN is_held THEN held_until END,
    ended_at = CASE WHEN is_held THEN NULL ELSE now() END,
    updated_at = clock_timestamp()
FROM (
    SELECT
        id AS held_id,
        coalesce(
            held_until BETWEEN clock_timestamp() AND clock_timestamp() + 2 * %(lease)s::interval, FALSE
        ) AS is_held
    FROM execution_action
    WHERE id = %(id)s
    FOR NO KEY UPDATE
) held
WHERE id = held_id AND state IN ('queued', 'running')
RETURNING state
