-- Finds the descendants of executions.
--
-- :ids bigint[]
-- returns  id, level: of the executions given and of all their descendants; the level of a child is higher than those
--          of its ancestors among them. Unknown ids are among them
--
-- It ends, because a child has a higher id than its parent (link_leads_to_a_later_execution).
WITH RECURSIVE family AS (
    SELECT given.id, 0 AS level FROM unnest(%(ids)s::bigint[]) AS given (id)
    UNION
    SELECT l.child_id, f.level + 1
    FROM family f
    JOIN execution_link l ON l.parent_id = f.id
)
SELECT id, max(level) FROM family GROUP BY id ORDER BY id
