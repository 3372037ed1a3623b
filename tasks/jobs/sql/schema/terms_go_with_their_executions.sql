-- Deletes the terms of an execution with it. The database does it, because `executions` deletes executions and does not
-- know of terms.
--
-- A migration reads this file: an edit needs a migration.
ALTER TABLE execution_terms
    ADD CONSTRAINT terms_of_execution FOREIGN KEY (execution_id) REFERENCES execution (id) ON DELETE CASCADE
