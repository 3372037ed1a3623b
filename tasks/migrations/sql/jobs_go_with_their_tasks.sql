-- Deletes a job with its task, and with the job that it follows. The database does it, because `executions` deletes
-- tasks and does not know of jobs.
ALTER TABLE execution_job
    ADD CONSTRAINT job_of_task FOREIGN KEY (task_id) REFERENCES task (id) ON DELETE CASCADE,
    ADD CONSTRAINT job_follows_job FOREIGN KEY (follows_id) REFERENCES execution_job (task_id) ON DELETE CASCADE;
-- What is kept of the end of a job goes with it.
ALTER TABLE execution_job_end
    ADD CONSTRAINT job_end_of_job FOREIGN KEY (job_id) REFERENCES execution_job (task_id) ON DELETE CASCADE
