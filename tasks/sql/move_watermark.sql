-- Moves the watermark at the end of a pass, in the transaction in which the lease of reconcile was extended.
--
-- :settled_before timestamptz
-- :last_pass_at timestamptz  :timeline text   the clock and the server that the pass began with: if the server
--                                             changed meanwhile, the next pass must see it
-- :drifted bigint  the executions that the pass found and marked
UPDATE execution_watermark
SET settled_before = %(settled_before)s, last_pass_at = %(last_pass_at)s, timeline = %(timeline)s,
    last_drifted = %(drifted)s
WHERE id = 1
