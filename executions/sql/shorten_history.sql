-- Deletes the oldest status changes of executions with a long history. One page.
--
-- :after_id bigint  the last id of the page before; 0: none
-- :page int         how many executions to read
-- :kept bigint      the newest changes of each execution that stay
-- :age interval     younger changes stay, too, and those that subscribers have not been told
-- :batch bigint     the most changes to delete of one execution; of ten executions at most
-- returns  one row: looked_at, next_id, deleted. next_id is the id to go on after, NULL if this was the last page
--
-- What is deleted is always the beginning of a history: it ends before the first row that is too young. In the
-- same statement execution_shortened_history notes through which revision it was deleted, so that the check of
-- the history knows which row is the first. The clock may have stepped back, so `at` need not grow with the
-- revision. The share lock keeps the execution from being deleted meanwhile, and delays no refresh and no
-- report.
WITH page AS MATERIALIZED (
    SELECT id, revision FROM execution WHERE id > %(after_id)s ORDER BY id LIMIT %(page)s
),
long AS MATERIALIZED (
    SELECT e.id, coalesce(s.through, 0) AS through, p.revision - %(kept)s AS limit_of_number
    FROM page p
    JOIN execution e ON e.id = p.id
    LEFT JOIN execution_shortened_history s ON s.execution_id = p.id
    WHERE p.revision - %(kept)s > coalesce(s.through, 0)
    ORDER BY e.id
    LIMIT 10
    FOR KEY SHARE OF e SKIP LOCKED
),
too_young AS (
    SELECT l.id, min(c.revision) AS first -- of the rows that this page may delete
    FROM long l
    JOIN execution_status_change c
        ON c.execution_id = l.id AND c.revision > l.through AND c.revision <= l.through + %(batch)s
    WHERE NOT c.told OR c.at >= now() - %(age)s::interval
    GROUP BY l.id
),
deletable AS MATERIALIZED (
    SELECT
        l.id,
        l.through,
        least(l.limit_of_number, l.through + %(batch)s, y.first - 1) AS new_through,
        least(l.limit_of_number, y.first - 1) > l.through + %(batch)s AS has_more
    FROM long l
    LEFT JOIN too_young y ON y.id = l.id
),
deleted AS (
    DELETE FROM execution_status_change c
    USING deletable d
    WHERE c.execution_id = d.id AND c.revision > d.through AND c.revision <= d.new_through
    RETURNING c.id
),
noted AS (
    INSERT INTO execution_shortened_history AS s (execution_id, through)
    SELECT id, new_through FROM deletable WHERE new_through > through
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
