-- Locks an execution, so that it is not deleted before this transaction ends.
--
-- :execution_id bigint
-- returns  vendor_type, status, whether it has a gate; no row if there is no such execution
--
-- | the execution | what is locked                                                                          |
-- | ------------- | --------------------------------------------------------------------------------------- |
-- | has a gate    | its key: refreshes, reports and stops do not wait, for the caller locks the gate next   |
-- | has none      | its row: a refresh, a stop and another addition come before this transaction or after   |
--
-- It is one lock from the beginning. A transaction that locks the key, and the row later, can deadlock with a deletion
-- that waits for the key while others change the row. So a caller that adds to an open execution stops it in another
-- transaction. The gate is made with the execution, and deleted with it.
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
