-- Finds the ancestors of executions.
--
-- :ids bigint[]
-- returns  id, level: of their parents, of the parents of those, and so on; the level of a parent is below 0 and below
--          those of its descendants among them. An execution without a parent has none
--
-- It ends, because a parent has a lower id than its child (link_leads_to_a_later_execution).
WITH RECURSIVE above AS (
    SELECT l.parent_id AS id, -1 AS level FROM execution_link l WHERE l.child_id = ANY(%(ids)s::bigint[])
    UNION
    SELECT l.parent_id, a.level - 1
    FROM above a
    JOIN execution_link l ON l.child_id = a.id
)
SELECT id, min(level) FROM above GROUP BY id ORDER BY id
