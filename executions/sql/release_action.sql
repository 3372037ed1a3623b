-- Releases the lease of an action, and ends the action if :state says so. Changes nothing if the lease is not the
-- holder's any more.
--
-- :id bigint  :holder text
-- :state text  'done', 'stopped' or 'failed'; 'running' if it is to go on
-- :error text  why it has failed, or ''
-- returns  one row, or none
UPDATE execution_action
SET
    state = %(state)s,
    holder = NULL,
    held_until = NULL,
    error = CASE WHEN %(error)s = '' THEN error ELSE %(error)s END,
    ended_at = CASE WHEN %(state)s = 'running' THEN NULL ELSE now() END,
    updated_at = clock_timestamp()
WHERE id = %(id)s AND holder = %(holder)s AND state = 'running'
RETURNING id
