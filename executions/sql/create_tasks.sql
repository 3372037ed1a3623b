-- Creates tasks, as Pending.
--
-- :tasks json  a list of {execution_id, vendor_type, job_id, revision, extra_attrs}: faster to bind than each value
-- returns  id of each, in the order of the list
INSERT INTO task (
    execution_id, vendor_type, job_id, status, status_code, status_revision, status_message, run_count, extra_attrs
)
SELECT execution_id, vendor_type, job_id, 'Pending', 0, revision, '', 0, extra_attrs
FROM ROWS FROM (
    json_to_recordset(%(tasks)s::json)
    AS (execution_id bigint, vendor_type text, job_id text, revision bigint, extra_attrs jsonb)
) WITH ORDINALITY AS given (execution_id, vendor_type, job_id, revision, extra_attrs, position)
ORDER BY position
RETURNING id
