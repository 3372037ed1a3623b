-- Deletes the needs of a job with it, and with the jobs that it needs: the database does it, as for jobs themselves.
--
-- A migration reads this file: an edit needs a migration.
ALTER TABLE execution_need
    ADD CONSTRAINT need_of_job FOREIGN KEY (job_id) REFERENCES execution_job (task_id) ON DELETE CASCADE,
    ADD CONSTRAINT need_for_job FOREIGN KEY (needed_id) REFERENCES execution_job (task_id) ON DELETE CASCADE
