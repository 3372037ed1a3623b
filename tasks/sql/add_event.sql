-- Adds to the event of this kind and minute, and deletes events that are older than two days, or of a clock that has
-- gone back since.
--
-- :kind text  :count bigint
WITH forgotten AS (DELETE FROM service_event WHERE minute < now() - interval '2 days' OR minute > now() + interval '1 minute')
INSERT INTO service_event AS known (minute, kind, count, last_at)
VALUES (date_trunc('minute', now()), %(kind)s, %(count)s, now())
ON CONFLICT (minute, kind, subject) DO UPDATE SET count = known.count + excluded.count, last_at = excluded.last_at
