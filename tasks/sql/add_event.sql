-- Adds to the event of this kind and minute, and deletes events that are older than two days.
--
-- :kind text  :count bigint
WITH forgotten AS (DELETE FROM service_event WHERE minute < now() - interval '2 days')
INSERT INTO service_event AS known (minute, kind, subject, count, last_at)
VALUES (date_trunc('minute', now()), %(kind)s, '', %(count)s, now())
ON CONFLICT (minute, kind, subject) DO UPDATE SET count = known.count + excluded.count, last_at = now()
