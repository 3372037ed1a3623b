-- Makes the planner use an index where there is one, until the end of the transaction. It cannot know how many
-- documents contain a value, and would read the whole table for a value that no document has.
SELECT set_config('enable_seqscan', 'off', TRUE)
