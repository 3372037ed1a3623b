-- The function that counts a refresh, for refresh_executions.sql. It is not a part of that statement, because
-- PostgreSQL keeps the plans of a function, and would plan a part of the statement again each time.
--
-- changed, unchanged bigint  how many executions   took float  how long it took, in seconds
-- late float[]  how many seconds after the last change of its tasks each status became final; NULL: none did
--
-- The bounds of the buckets are those of counters.py, which reads them; the last bucket has none.
-- An observation of lateness is a day at most: rows that were wrong for years say nothing about this service.
--
-- A migration reads this file: an edit needs a migration.
CREATE OR REPLACE FUNCTION count_execution_refresh(changed bigint, unchanged bigint, took float, late float[])
RETURNS void
LANGUAGE plpgsql AS $$
DECLARE
    took_bounds CONSTANT float[] := '{0.001,0.0025,0.005,0.01,0.025,0.05,0.1,0.25,0.5,1,2.5,5,10}';
    late_bounds CONSTANT float[] := '{0.05,0.1,0.25,0.5,1,2.5,5,10,30,60,120,300,900,3600}';
BEGIN
    PERFORM add_to_execution_counters(array_agg(c.metric), array_agg(c.series), array_agg(c.amount))
    FROM (
        VALUES
            ('refreshes', 'result=changed', changed),
            ('refreshes', 'result=unchanged', unchanged),
            ('refresh_seconds', 'le=' || coalesce(took_bounds[1 + width_bucket(took, took_bounds)]::text, '+Inf'), 1),
            ('refresh_seconds', 'sum', (1000000 * took)::bigint)
    ) AS c (metric, series, amount);
    IF late IS NOT NULL THEN
        PERFORM add_to_execution_counters(array_agg(c.metric), array_agg(c.series), array_agg(c.amount))
        FROM (
            SELECT
                'report_to_true_seconds' AS metric,
                'le=' || coalesce(
                    late_bounds[1 + width_bucket(least(86400, greatest(0, seconds)), late_bounds)]::text, '+Inf'
                ) AS series,
                count(*) AS amount
            FROM unnest(late) AS seconds
            GROUP BY 2
            UNION ALL
            SELECT 'report_to_true_seconds', 'sum', sum(1000000 * least(86400, greatest(0, seconds)))::bigint
            FROM unnest(late) AS seconds
        ) AS c;
    END IF;
END
$$
