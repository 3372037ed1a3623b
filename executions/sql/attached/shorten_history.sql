-- Deletes the oldest status changes of executions with a long history. One page.
--
-- Parameters and result are those of ../shorten_history.sql. The rows are counted, because the revisions have gaps, and
-- Harbor's executions are neither read nor locked.
WITH page AS MATERIALIZED (
    SELECT DISTINCT execution_id AS id
    FROM execution_status_change
    WHERE execution_id > %(after_id)s
    ORDER BY execution_id
    LIMIT %(page)s
),
long AS MATERIALIZED (
    SELECT p.id, beyond.revision AS limit_of_number
    FROM page p
    CROSS JOIN LATERAL (
        SELECT c.revision
        FROM execution_status_change c
        WHERE c.execution_id = p.id
        ORDER BY c.revision DESC
        OFFSET %(kept)s
        LIMIT 1
    ) beyond
    ORDER BY p.id
    LIMIT 10
),
oldest AS MATERIALIZED (
    SELECT l.id, c.revision, bool_and(c.told AND c.at < now() - %(age)s::interval) OVER up_to_here AS is_deletable
    FROM long l
    CROSS JOIN LATERAL (
        SELECT revision, told, at
        FROM execution_status_change
        WHERE execution_id = l.id AND revision <= l.limit_of_number
        ORDER BY revision
        LIMIT %(batch)s
    ) c
    WINDOW up_to_here AS (PARTITION BY l.id ORDER BY c.revision)
),
deletable AS MATERIALIZED (
    SELECT o.id, max(o.revision) AS through, count(*) = %(batch)s AS has_more
    FROM oldest o
    WHERE o.is_deletable
    GROUP BY o.id
),
deleted AS (
    DELETE FROM execution_status_change c
    USING deletable d
    WHERE c.execution_id = d.id AND c.revision <= d.through
    RETURNING c.id
),
noted AS (
    INSERT INTO execution_shortened_history AS s (execution_id, through)
    SELECT id, through FROM deletable
    ON CONFLICT (execution_id) DO UPDATE SET through = greatest(s.through, excluded.through)
)
SELECT
    (SELECT count(*) FROM page),
    CASE
        WHEN EXISTS (SELECT FROM deletable WHERE has_more)
            THEN (SELECT min(id) - 1 FROM deletable WHERE has_more)
        WHEN (SELECT count(*) FROM long) = 10 THEN (SELECT max(id) FROM long)
        WHEN (SELECT count(*) FROM page) = %(page)s THEN (SELECT max(id) FROM page)
    END,
    (SELECT count(*) FROM deleted)
