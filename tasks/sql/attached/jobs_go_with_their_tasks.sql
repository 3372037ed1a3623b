-- Deletes a job with the job that it follows. There is no constraint to the table `task`, which is Harbor's: it would
-- be in the way of Harbor's deletes, and there are no jobs.
ALTER TABLE execution_job
    ADD CONSTRAINT job_follows_job FOREIGN KEY (follows_id) REFERENCES execution_job (task_id) ON DELETE CASCADE
