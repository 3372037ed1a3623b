-- Reads what the overview shows of the database. Cheap at any size: no count goes beyond :most rows.
--
-- :most integer  the largest count
-- returns  quarantined, dead letters, open actions on many
--          seconds since the last pass of reconcile began, and the executions that it found and marked; NULL if there
--          was none
--          the jobs that run
--          seconds since the last sample; NULL if there was none
--          the paused queues, as JSON, the oldest pause first
--          the webhooks to which nothing is sent for a while, because requests failed, as JSON
SELECT
    (SELECT count(*) FROM (SELECT FROM execution_quarantine LIMIT %(most)s) AS counted),
    (SELECT count(*) FROM (SELECT FROM execution_delivery WHERE state = 'dead' LIMIT %(most)s) AS counted),
    (SELECT count(*) FROM (
        SELECT FROM execution WHERE vendor_type = 'BULK_ACTION' AND end_time IS NULL LIMIT %(most)s
    ) AS counted),
    (SELECT extract(EPOCH FROM now() - last_pass_at)::float FROM execution_watermark WHERE id = 1),
    (SELECT last_drifted FROM execution_watermark WHERE id = 1),
    (SELECT count(*) FROM (SELECT FROM execution_job WHERE state = 'running' LIMIT %(most)s) AS counted),
    (SELECT extract(EPOCH FROM now() - max(at))::float FROM service_sample),
    (SELECT coalesce(jsonb_agg(queue ORDER BY at, queue), '[]') FROM execution_pause),
    (SELECT coalesce(jsonb_agg(name ORDER BY name), '[]') FROM (
        SELECT name FROM execution_subscription WHERE enabled AND failures > 0 AND retry_at > now()
    ) AS waiting)
