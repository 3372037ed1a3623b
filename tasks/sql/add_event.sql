-- Adds to the event of this kind, subject and minute, and deletes events that are older than two days, or
-- of a clock that has gone back since.
--
-- :kind :subject text  :count bigint  :ago interval, since it happened
WITH forgotten AS (DELETE FROM service_event WHERE minute < now() - interval '2 days' OR minute > now() + interval '1 minute')
INSERT INTO service_event AS known (minute, kind, subject, count, last_at)
SELECT date_trunc('minute', moment.at), %(kind)s, %(subject)s, %(count)s, moment.at
FROM (SELECT now() - %(ago)s::interval AS at) moment
ON CONFLICT (minute, kind, subject) DO UPDATE SET count = known.count + excluded.count, last_at = excluded.last_at
