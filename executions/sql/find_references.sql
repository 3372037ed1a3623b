-- Finds the foreign keys that keep executions from being deleted and are not our own: those without an action, such as
-- Django's. Other obstacles, such as a foreign key on a task, are met by the deletion.
--
-- :ours text[]  our tables, whose rows are deleted first
-- returns  the table and column, and a query that returns which executions of an array its rows name
SELECT
    format('%%s.%%I', r.oid::regclass, a.attname),
    format('SELECT %%1$I FROM %%2$s WHERE %%1$I = ANY(%%%%s)', a.attname, r.oid::regclass)
FROM pg_constraint f
JOIN pg_class r ON r.oid = f.conrelid
JOIN pg_attribute a ON a.attrelid = f.conrelid AND a.attnum = f.conkey[1]
WHERE
    f.contype = 'f'
    AND f.confrelid = 'execution'::regclass
    AND f.confdeltype IN ('a', 'r')
    AND f.conparentid = 0
    AND cardinality(f.conkey) = 1
    AND r.relname <> ALL(%(ours)s::text[])
    AND has_table_privilege(r.oid, 'SELECT')
ORDER BY 1
