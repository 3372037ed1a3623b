-- Makes the planner prefer an index to the whole table, until the end of the transaction. The planner cannot know how
-- many documents contain a value. The index is made cheap, because a forbidden scan (enable_seqscan) has a cost that
-- makes PostgreSQL compile the statement.
SELECT set_config('random_page_cost', '0', TRUE)
