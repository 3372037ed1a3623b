-- Reads what a notification tells of executions: the row, the counts of its tasks, and its first failures. A gate does
-- not count.
--
-- :ids bigint[]  executions  :most int  failures of each  :most_text int  characters of a message
-- :most_attributes int  characters of extra_attrs; longer ones are left out
-- returns  id, vendor_id, vendor_key (vendor_id as text, or the text that was given), status_message, trigger,
--          extra_attrs (NULL: left out), start_time, update_time, end_time, counts (JSON: status to number),
--          failures (JSON: a list); no row for an execution that is deleted
SELECT
    e.id,
    e.vendor_id,
    coalesce(k.key, e.vendor_id::text, ''),
    coalesce(left(e.status_message, %(most_text)s), ''),
    e.trigger,
    CASE WHEN length(e.extra_attrs::text) <= %(most_attributes)s THEN e.extra_attrs::text END,
    e.start_time,
    e.update_time,
    e.end_time,
    counted.counts::text,
    failed.failures::text
FROM execution e
LEFT JOIN execution_vendor_key k ON k.execution_id = e.id
LEFT JOIN task gate ON gate.id = (SELECT g.task_id FROM execution_gate g WHERE g.execution_id = e.id)
CROSS JOIN LATERAL (
    SELECT
        coalesce(json_object_agg(c.status, c.number) FILTER (WHERE c.number > 0), '{}') AS counts,
        coalesce(sum(c.errors), 0) AS errors
    FROM (
        SELECT
            t.status, count(*) - coalesce((t.status = gate.status)::int, 0) AS number,
            count(*) FILTER (WHERE t.status = 'Error') AS errors
        FROM task t
        WHERE t.execution_id = e.id
        GROUP BY t.status, gate.status
    ) c
) counted
CROSS JOIN LATERAL (
    SELECT coalesce(json_agg(json_build_object('task_id', f.id, 'job_id', coalesce(f.job_id, ''), 'message', coalesce(left(f.message, %(most_text)s), ''))), '[]')
        AS failures
    FROM (
        SELECT t.id, t.job_id, t.status_message AS message
        FROM task t
        WHERE counted.errors > 0 AND t.execution_id = e.id AND t.status_code = 3 AND t.status = 'Error'
        ORDER BY t.end_time, t.id
        LIMIT %(most)s
    ) f
) failed
WHERE e.id = ANY(%(ids)s::bigint[])
