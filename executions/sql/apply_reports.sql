-- Applies any number of reports, exactly as if they came one after the other in the order given.
-- A report of Harbor's hook is one row: report_by_job_function.sql has the same rule for it.
--
-- :task_ids bigint[]  :statuses text[]  :codes int[]  :revisions bigint[]  :messages text[] (NULL: none)
-- :earlier_runs int[]  the number of runs before this one; 0 if the runner does not count them
-- :source text  by which way they came: applied and unchanged reports are counted by it
-- returns one row for each execution whose tasks changed: execution_id, vendor_type, stopped (a report stopped one
--          of its tasks); last, one row with execution_id NULL: `accepted`, the places (from 1) of the reports that
--          changed something, and the unknown task ids in `unknown`
--
-- A report is accepted if `revision * 4 + code` is greater than that of the task and of earlier reports for the task in
-- this batch. So a report that is repeated, late or out of order changes nothing, and the first final status of a
-- revision stands. Rows are locked in id order and read under the lock.
-- A message stays until another comes, a new run begins, or the task succeeds: a Success has its own message or none.
WITH given AS (
    SELECT
        g.task_id,
        g.status,
        g.code,
        g.revision,
        CASE WHEN g.status = 'Success' THEN coalesce(g.message, '') ELSE g.message END AS message,
        g.earlier_runs,
        g.position,
        g.revision * 4 + g.code AS rank
    FROM unnest(
        %(task_ids)s::bigint[],
        %(statuses)s::text[],
        %(codes)s::int[],
        %(revisions)s::bigint[],
        %(messages)s::text[],
        %(earlier_runs)s::int[]
    ) WITH ORDINALITY AS g (task_id, status, code, revision, message, earlier_runs, position)
),
held AS MATERIALIZED (
    SELECT id, execution_id, coalesce(status_revision, 0)::bigint * 4 + status_code AS rank
    FROM task
    WHERE id = ANY(%(task_ids)s::bigint[])
    ORDER BY id
    FOR NO KEY UPDATE
),
judged AS (
    SELECT
        g.*,
        h.execution_id,
        greatest(h.rank, max(g.rank) OVER (
            PARTITION BY g.task_id ORDER BY g.position ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING
        )) AS rank_before
    FROM given g
    JOIN held h ON h.id = g.task_id
),
accepted AS (
    SELECT
        *,
        rank / 4 > rank_before / 4 AS is_rerun,
        -- the runs that the report states, and those that begin after it
        earlier_runs + count(*) FILTER (WHERE rank / 4 > rank_before / 4) OVER (
            PARTITION BY task_id ORDER BY rank DESC ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING
        ) AS stated_runs,
        max(revision) OVER (PARTITION BY task_id) AS last_revision
    FROM judged
    WHERE rank > rank_before
),
-- each accepted report outranks the report before it, so the last report has the highest rank
verdict AS (
    SELECT
        task_id,
        min(execution_id) AS execution_id,
        count(*) FILTER (WHERE is_rerun) AS reruns,
        (array_agg(status ORDER BY rank DESC))[1] AS status,
        (array_agg(code ORDER BY rank DESC))[1] AS code,
        -- the last message about the last run
        (array_agg(message ORDER BY rank DESC) FILTER (
            WHERE message IS NOT NULL AND revision = last_revision
        ))[1] AS message,
        max(revision) AS revision,
        max(stated_runs) AS stated_runs
    FROM accepted
    GROUP BY task_id
),
changed AS (
    UPDATE task t
    SET
        status = v.status,
        status_code = v.code,
        status_revision = v.revision,
        status_message = coalesce(v.message, CASE WHEN v.reruns > 0 THEN '' ELSE t.status_message END),
        run_count = greatest(t.run_count + v.reruns, v.stated_runs),
        start_time = CASE
            WHEN v.reruns > 0 THEN now()
            WHEN v.code >= 2 THEN coalesce(t.start_time, now())
            ELSE t.start_time
        END,
        update_time = now(),
        end_time = CASE WHEN v.code = 3 THEN now() END
    FROM verdict v
    WHERE t.id = v.task_id
    RETURNING t.execution_id, v.status = 'Stopped' AS stopped
),
result AS MATERIALIZED (
    SELECT
        (SELECT array_agg(position) FROM accepted) AS accepted,
        (SELECT array_agg(DISTINCT g.task_id) FROM given g WHERE NOT EXISTS (
            SELECT FROM held h WHERE h.id = g.task_id
        )) AS unknown,
        (SELECT count(*) FROM accepted) AS applied,
        (SELECT count(*) FROM judged) AS known
)
SELECT e.id, e.vendor_type, bool_or(c.stopped), NULL::bigint[], NULL::bigint[]
FROM changed c
JOIN execution e ON e.id = c.execution_id
GROUP BY e.id
UNION ALL
SELECT NULL, NULL, FALSE, r.accepted, r.unknown
FROM result r
CROSS JOIN LATERAL add_to_execution_counters(
    ARRAY['reports', 'reports'],
    ARRAY['result=applied,source=' || %(source)s, 'result=unchanged,source=' || %(source)s],
    ARRAY[r.applied, r.known - r.applied]
)
