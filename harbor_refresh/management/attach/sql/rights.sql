-- Finds the rights that this role lacks.
--
-- :schema  text  the schema of our tables
-- returns  right, object (as GRANT names them; NULL: the right is the membership in a role), role
--
-- A row lock takes the right to update, and one column is enough. A schema that is there must let us make tables;
-- one that is not there is made by the first migration, which takes the right to create in the database.
-- Without the right to Harbor's schema the names of its tables are not found, so the schema is named here. Reconcile
-- looks at the transactions of Harbor's cores, whose role owns its tables.
WITH needed AS (
    SELECT 'USAGE' AS "right", 'SCHEMA ' || n.nspname AS object, has_schema_privilege(n.oid, 'USAGE') AS has
    FROM pg_namespace n
    JOIN pg_class c ON c.relnamespace = n.oid AND c.relname = 'execution'
    WHERE n.nspname = 'public'
    UNION ALL
    SELECT 'pg_read_all_stats', NULL, pg_has_role('pg_read_all_stats', 'USAGE') OR pg_has_role(c.relowner, 'USAGE')
    FROM pg_class c
    WHERE c.oid = to_regclass('execution')
    UNION ALL
    SELECT 'SELECT', 'TABLE ' || c.oid::regclass, has_table_privilege(c.oid, 'SELECT')
    FROM pg_class c
    WHERE c.oid IN (to_regclass('execution'), to_regclass('task'))
    UNION ALL
    SELECT
        format('UPDATE (%%I)', a.attname),
        'TABLE ' || c.oid::regclass,
        has_column_privilege(c.oid, a.attnum, 'UPDATE')
    FROM pg_class c
    JOIN pg_attribute a ON a.attrelid = c.oid
    WHERE
        c.oid = to_regclass('execution')
        AND a.attname IN ('status', 'revision', 'update_time', 'end_time')
    UNION ALL
    SELECT 'USAGE, CREATE', 'SCHEMA ' || n.nspname, has_schema_privilege(n.oid, 'USAGE') AND has_schema_privilege(n.oid, 'CREATE')
    FROM pg_namespace n
    WHERE n.nspname = %(schema)s
    UNION ALL
    SELECT 'CREATE', 'DATABASE ' || quote_ident(current_database()), has_database_privilege(current_database(), 'CREATE')
    WHERE to_regnamespace(%(schema)s) IS NULL
)
SELECT "right", object, quote_ident(current_user) FROM needed WHERE NOT has
