-- Looks for an index of task that answers the rollup without reading the table: it begins with execution_id and holds
-- status and end_time.
--
-- returns  whether it is there, the schema of task, how many tasks there are about (by statistics, -1: not known), the
--          size of task in bytes
SELECT
    EXISTS (
        SELECT
        FROM pg_index i
        WHERE
            i.indrelid = t.oid
            AND i.indisvalid
            AND i.indpred IS NULL
            AND i.indkey[0] = (SELECT attnum FROM pg_attribute WHERE attrelid = t.oid AND attname = 'execution_id')
            AND 2 = (
                SELECT count(*)
                FROM pg_attribute a
                WHERE a.attrelid = t.oid AND a.attname IN ('status', 'end_time') AND a.attnum = ANY(i.indkey)
            )
    ),
    quote_ident(t.relnamespace::regnamespace::text),
    t.reltuples::bigint,
    pg_table_size(t.oid)
FROM pg_class t
WHERE t.oid = to_regclass('task')
