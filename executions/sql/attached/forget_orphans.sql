-- Deletes our rows of executions that Harbor has deleted. One page.
--
-- :after_id bigint  the last id of the page before; 0: none
-- :page int         how many executions with rows of ours to look at
-- returns  one row: looked_at, last_id, deleted
--
-- A change that subscribers have not been told stays until they are. Harbor never uses an id again.
WITH page AS MATERIALIZED (
    SELECT execution_id AS id
    FROM (
        (
            SELECT DISTINCT execution_id FROM execution_status_change
            WHERE execution_id > %(after_id)s ORDER BY execution_id LIMIT %(page)s
        )
        UNION
        (
            SELECT execution_id FROM execution_quarantine
            WHERE execution_id > %(after_id)s ORDER BY execution_id LIMIT %(page)s
        )
        UNION
        (
            SELECT execution_id FROM execution_shortened_history
            WHERE execution_id > %(after_id)s ORDER BY execution_id LIMIT %(page)s
        )
    ) ours
    ORDER BY execution_id
    LIMIT %(page)s
),
gone AS MATERIALIZED (
    SELECT p.id FROM page p WHERE NOT EXISTS (SELECT FROM execution e WHERE e.id = p.id)
),
changes AS (
    DELETE FROM execution_status_change c USING gone g WHERE c.execution_id = g.id AND c.told RETURNING 1
),
quarantined AS (
    DELETE FROM execution_quarantine q USING gone g WHERE q.execution_id = g.id RETURNING 1
),
shortened AS (
    DELETE FROM execution_shortened_history s USING gone g WHERE s.execution_id = g.id RETURNING 1
)
SELECT
    (SELECT count(*) FROM page),
    (SELECT max(id) FROM page),
    (SELECT count(*) FROM changes) + (SELECT count(*) FROM quarantined) + (SELECT count(*) FROM shortened)
