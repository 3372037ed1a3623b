-- Reads what autovacuum knows of the large tables.
--
-- returns  a JSON object for each table: name, vacuum_is_off (its own option), live, dead, vacuum_begins_at (the number
--          of dead rows at which autovacuum begins), changed_since_analyzed, analyze_begins_at, xid_age, freeze_at
SELECT to_jsonb(state) FROM (
    SELECT
        c.relname::text AS name,
        coalesce(
            (SELECT NOT option_value::bool FROM pg_options_to_table(c.reloptions)
             WHERE option_name = 'autovacuum_enabled'), FALSE
        ) AS vacuum_is_off,
        s.n_live_tup AS live,
        s.n_dead_tup AS dead,
        (current_setting('autovacuum_vacuum_threshold')::float8
            + current_setting('autovacuum_vacuum_scale_factor')::float8 * greatest(c.reltuples, 0)) AS vacuum_begins_at,
        s.n_mod_since_analyze AS changed_since_analyzed,
        (current_setting('autovacuum_analyze_threshold')::float8
            + current_setting('autovacuum_analyze_scale_factor')::float8 * greatest(c.reltuples, 0)) AS analyze_begins_at,
        age(c.relfrozenxid)::bigint AS xid_age,
        current_setting('autovacuum_freeze_max_age')::bigint AS freeze_at
    FROM pg_class c
    JOIN pg_stat_user_tables s ON s.relid = c.oid
    WHERE c.relname IN ('execution', 'execution_job', 'task') AND pg_table_is_visible(c.oid)
    ORDER BY c.relname
) state
