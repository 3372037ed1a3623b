-- Reads one page of executions, newest first within each vendor type and vendor id, and finds those that
-- retention does not keep.
--
-- :after_vendor text  :after_vendor_id bigint  :after_id bigint  the last execution of the page before; '', 0, 0: none
-- :seen bigint      how many executions of that vendor type and vendor id were read so far
-- :page int         how many to read
-- :named text[]  :counts bigint[]  how many of each named vendor type to keep; :others bigint  of each other one.
--                   NULL: no execution is deleted because of its number
-- :older_than interval  delete those that ended before that, whatever their number; NULL: none
-- returns  vendor_type, vendor_id, id of each execution of the page, and its place among those with the first two; the
--          number of its tasks, if it is to be deleted, else NULL
--
-- As in Harbor, the newest are counted whatever their status, and only those with a final status are deleted.
-- An execution with an unfinished task is not deleted, even if its stored status is final: it will be refreshed. Nor is
-- one with a change that subscribers have not been told. The indexes execution_vendor and task_rollup answer it.
WITH rest_of_the_last AS (
    SELECT id, vendor_type, vendor_id, status, end_time
    FROM execution
    WHERE
        vendor_type = %(after_vendor)s
        AND vendor_id = %(after_vendor_id)s
        AND id < %(after_id)s
    ORDER BY id DESC
    LIMIT %(page)s
),
following AS (
    SELECT id, vendor_type, vendor_id, status, end_time
    FROM execution
    WHERE (vendor_type, vendor_id) > (%(after_vendor)s, %(after_vendor_id)s)
    ORDER BY vendor_type, vendor_id, id DESC
    LIMIT %(page)s
),
page AS MATERIALIZED (
    SELECT * FROM rest_of_the_last
    UNION ALL
    SELECT * FROM following
    ORDER BY vendor_type, vendor_id, id DESC
    LIMIT %(page)s
),
placed AS MATERIALIZED (
    SELECT
        *,
        row_number() OVER (PARTITION BY vendor_type, vendor_id ORDER BY id DESC)
        + CASE
            WHEN (vendor_type, vendor_id) = (%(after_vendor)s, %(after_vendor_id)s) THEN %(seen)s ELSE 0
        END AS place
    FROM page
),
beyond AS MATERIALIZED (
    SELECT p.id
    FROM placed p
    LEFT JOIN unnest(%(named)s::text[], %(counts)s::bigint[]) AS l (vendor_type, kept) ON l.vendor_type = p.vendor_type
    WHERE
        p.status NOT IN ('Pending', 'Scheduled', 'Running')
        AND (
            p.place > coalesce(l.kept, %(others)s::bigint)
            OR p.end_time < now() - %(older_than)s::interval
        )
),
sweepable AS (
    SELECT b.id, t.tasks
    FROM beyond b
    CROSS JOIN LATERAL (
        SELECT count(*) AS tasks, count(*) FILTER (WHERE status_code < 3) AS unfinished
        FROM task
        WHERE execution_id = b.id
    ) AS t
    WHERE
        t.unfinished = 0
        AND NOT EXISTS (SELECT FROM execution_status_change c WHERE c.execution_id = b.id AND NOT c.told)
)
SELECT p.vendor_type, p.vendor_id, p.id, p.place, s.tasks
FROM placed p
LEFT JOIN sweepable s ON s.id = p.id
ORDER BY p.vendor_type, p.vendor_id, p.id DESC
