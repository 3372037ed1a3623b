-- The function that counts a refresh, for refresh_executions.sql. It is not a part of that statement, because
-- PostgreSQL keeps the plans of a function, and would plan a part of the statement again each time.
--
-- changed, unchanged bigint  how many executions   took float  how long it took, in seconds
-- late float[]  how many seconds after the last change of its tasks each status became final; NULL: none did
-- refresh_bounds float[]  refresh_labels text[]  true_bounds float[]  true_labels text[]   the buckets of the two
--          histograms; there is one label more than there are bounds
--
-- An observation of lateness is a day at most: rows that were wrong for years say nothing about this service.
--
-- A migration reads this file: an edit needs a migration.
CREATE FUNCTION count_execution_refresh(
    changed bigint, unchanged bigint, took float, late float[],
    refresh_bounds float[], refresh_labels text[], true_bounds float[], true_labels text[]
) RETURNS void
LANGUAGE plpgsql AS $$
BEGIN
    PERFORM add_to_execution_counters(array_agg(c.metric), array_agg(c.series), array_agg(c.amount))
    FROM (
        VALUES
            ('refreshes', 'result=changed', changed),
            ('refreshes', 'result=unchanged', unchanged),
            ('refresh_seconds', refresh_labels[1 + width_bucket(took, refresh_bounds)], 1),
            ('refresh_seconds', 'sum', (1000000 * took)::bigint)
    ) AS c (metric, series, amount);
    IF late IS NOT NULL THEN
        PERFORM add_to_execution_counters(array_agg(c.metric), array_agg(c.series), array_agg(c.amount))
        FROM (
            SELECT
                'report_to_true_seconds' AS metric,
                true_labels[1 + width_bucket(least(86400, greatest(0, seconds)), true_bounds)] AS series,
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
