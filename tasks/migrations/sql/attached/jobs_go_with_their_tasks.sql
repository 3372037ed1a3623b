-- Deletes a job with the job that it follows. There is no constraint to the table `task`, which is Harbor's: it would
-- be in the way of Harbor's deletes, and there are no jobs.
ALTER TABLE execution_job
    ADD CONSTRAINT job_follows_job FOREIGN KEY (follows_id) REFERENCES execution_job (task_id) ON DELETE CASCADE;
-- What is kept of the end of a job goes with it.
ALTER TABLE execution_job_end
    ADD CONSTRAINT job_end_of_job FOREIGN KEY (job_id) REFERENCES execution_job (task_id) ON DELETE CASCADE
