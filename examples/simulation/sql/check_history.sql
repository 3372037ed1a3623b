-- K3: executions whose history is wrong. It must have exactly one row for each revision, each row must begin at the
-- status where the row before it ended, and the last row must end at the stored status. The sweep deletes the oldest
-- rows of a long history, but none of the newest :kept.
--
-- :at_most int  NULL: all of them  :kept int
-- returns  execution_id, what; an execution is listed once for each of the three rules that it violates
WITH chain AS MATERIALIZED (
    SELECT
        execution_id,
        revision,
        from_status,
        to_status,
        lag(to_status) OVER by_revision AS ended_before,
        lead(revision) OVER by_revision IS NULL AS is_last
    FROM execution_status_change
    WINDOW by_revision AS (PARTITION BY execution_id ORDER BY revision)
),
extent AS (
    SELECT execution_id, count(*) AS rows, min(revision) AS first, max(revision) AS last
    FROM chain
    GROUP BY execution_id
),
not_each_revision AS (
    SELECT
        e.id AS execution_id,
        format(
            'has revision %%s and %%s history rows, from revision %%s to %%s',
            e.revision, coalesce(x.rows, 0), coalesce(x.first, 0), coalesce(x.last, 0)
        ) AS what
    FROM execution e
    LEFT JOIN extent x ON x.execution_id = e.id
    WHERE
        coalesce(x.rows, 0) <> coalesce(x.last - x.first + 1, 0)
        OR coalesce(x.last, 0) <> e.revision
        OR (x.first > 1 AND x.rows < %(kept)s)
),
broken_link AS (
    SELECT
        execution_id,
        format('begins revision %%s at %%s, but the one before it ended at %%s', revision, from_status, ended_before)
            AS what
    FROM chain
    WHERE from_status <> ended_before
),
other_end AS (
    SELECT c.execution_id, format('is %%s, but its history ends at %%s', e.status, c.to_status) AS what
    FROM chain c
    JOIN execution e ON e.id = c.execution_id
    WHERE c.is_last AND c.to_status <> e.status
)
SELECT execution_id, what
FROM (
    SELECT * FROM not_each_revision
    UNION ALL
    SELECT * FROM broken_link
    UNION ALL
    SELECT * FROM other_end
) AS wrong
ORDER BY execution_id, what
LIMIT %(at_most)s
