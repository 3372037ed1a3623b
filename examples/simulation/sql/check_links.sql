-- K1: children whose task in their parent says another status or end than they have, over the whole table.
--
-- :at_most  int   NULL: all of them
-- returns  id of the child, what, in id order
SELECT
    e.id,
    format(
        'is %%s with end %%s, and its task in execution %%s is %%s with end %%s',
        e.status, coalesce(e.end_time::text, 'none'),
        l.parent_id, t.status, coalesce(t.end_time::text, 'none')
    )
FROM execution_link l
JOIN execution e ON e.id = l.child_id
JOIN task t ON t.id = l.task_id
WHERE (t.status, t.end_time) IS DISTINCT FROM (e.status, e.end_time)
ORDER BY e.id
LIMIT %(at_most)s
