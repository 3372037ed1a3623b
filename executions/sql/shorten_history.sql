-- Deletes the oldest status changes of executions with a long history. One page.
--
-- :after_id bigint  the last id of the page before; 0: none
-- :page int         how many executions to read
-- :kept bigint      the newest changes of each execution that stay
-- :age interval     younger changes stay, too, and those that subscribers have not been told
-- :any_revision bool  look also at executions of fewer revisions, because Harbor resets its revisions
-- :batch bigint     the most changes to delete of one execution; of ten executions at most
-- returns  the id to go on after, NULL if this was the last page; how many changes were deleted
--
-- What is deleted is the beginning of a history, up to the first row that is too young; execution_shortened_history
-- notes through which revision. Rows are counted, as the revisions of an attached Harbor have gaps. The share lock keeps
-- the execution from being deleted.
WITH page AS MATERIALIZED (
    SELECT id, revision FROM execution WHERE id > %(after_id)s ORDER BY id LIMIT %(page)s
),
long AS MATERIALIZED (
    SELECT p.id, beyond.revision AS limit_of_number
    FROM page p
    JOIN execution e ON e.id = p.id
    CROSS JOIN LATERAL (
        SELECT c.revision
        FROM execution_status_change c
        WHERE c.execution_id = p.id
        ORDER BY c.revision DESC
        OFFSET %(kept)s
        LIMIT 1
    ) beyond
    WHERE p.revision > %(kept)s OR %(any_revision)s
    ORDER BY p.id
    LIMIT 10
    FOR KEY SHARE OF e SKIP LOCKED
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
    SELECT o.id, min(o.revision) AS first, max(o.revision) AS through, count(*) = %(batch)s AS has_more
    FROM oldest o
    WHERE o.is_deletable
    GROUP BY o.id
),
deleted AS (
    DELETE FROM execution_status_change c
    USING deletable d
    WHERE c.execution_id = d.id AND c.revision BETWEEN d.first AND d.through
    RETURNING c.id
),
noted AS (
    INSERT INTO execution_shortened_history AS s (execution_id, through)
    SELECT id, through FROM deletable
    ON CONFLICT (execution_id) DO UPDATE SET through = greatest(s.through, excluded.through)
)
SELECT
    CASE
        WHEN EXISTS (SELECT FROM deletable WHERE has_more)
            THEN (SELECT min(id) - 1 FROM deletable WHERE has_more)
        WHEN (SELECT count(*) FROM long) = 10 THEN (SELECT max(id) FROM long)
        WHEN (SELECT count(*) FROM page) = %(page)s THEN (SELECT max(id) FROM page)
    END,
    (SELECT count(*) FROM deleted)
