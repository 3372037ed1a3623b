-- Adds a sample of the state at this moment, and deletes samples that are older than two days, or of a clock that has
-- gone back since.
--
-- :backlog bigint or NULL  :refreshed :failed :recovered bigint  :latency jsonb, an array
-- returns  one row if it was added
--
-- There is one sample for each five seconds: a second process that samples at the same time changes nothing.
WITH forgotten AS (DELETE FROM service_sample WHERE at < now() - interval '2 days' OR at > now() + interval '1 minute')
INSERT INTO service_sample (at, backlog, refreshed, failed, recovered, latency)
VALUES (
    date_bin('5 seconds', now(), timestamptz '2000-01-01 00:00Z'),
    %(backlog)s::bigint,
    %(refreshed)s,
    %(failed)s,
    %(recovered)s,
    %(latency)s::jsonb
)
ON CONFLICT (at) DO NOTHING
RETURNING at
