-- Deletes what is kept of the end of a job with it.
ALTER TABLE execution_job_end
    ADD CONSTRAINT job_end_of_job FOREIGN KEY (job_id) REFERENCES execution_job (task_id) ON DELETE CASCADE
