-- Notes that a worker is alive. One that was taken for dead comes back: its old runs have been released.
--
-- :id bigint  :node text (its name)  :slots int  :busy int  :queues text[]  :rate float8
INSERT INTO execution_node (id, name, slots, busy, queues, rate)
VALUES (%(id)s, %(node)s, %(slots)s, %(busy)s, to_jsonb(%(queues)s::text[]), %(rate)s)
ON CONFLICT (id) DO UPDATE
SET heard_at = now(), suspected_at = NULL, slots = EXCLUDED.slots, busy = EXCLUDED.busy, queues = EXCLUDED.queues,
    rate = EXCLUDED.rate
