-- Locks an execution, so that it is not deleted before this transaction ends.
--
-- :execution_id bigint
-- returns  vendor_type, status, whether it has a gate; no row if there is no such execution
--
-- With a gate its key is locked: refreshes, reports and stops do not wait, because the caller locks the gate next.
-- Without one its row is locked: a refresh, a stop and another addition come before this transaction or after it.
-- A transaction that locks the key, and the row later, can deadlock with a deletion. So a caller that adds to an open
-- execution stops it in another transaction.
WITH gate AS MATERIALIZED (
    SELECT EXISTS (SELECT FROM execution_gate WHERE execution_id = %(execution_id)s) AS is_there
),
by_key AS MATERIALIZED (
    SELECT vendor_type, status
    FROM execution
    WHERE id = %(execution_id)s AND (SELECT is_there FROM gate)
    FOR KEY SHARE
),
by_row AS MATERIALIZED (
    SELECT vendor_type, status
    FROM execution
    WHERE id = %(execution_id)s AND NOT (SELECT is_there FROM gate)
    FOR NO KEY UPDATE
)
SELECT vendor_type, status, TRUE FROM by_key
UNION ALL
SELECT vendor_type, status, FALSE FROM by_row
