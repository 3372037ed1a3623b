-- Deletes a job with its task, and with the job that it follows. The database does it, because `executions` deletes
-- tasks and does not know of jobs.
ALTER TABLE execution_job
    ADD CONSTRAINT job_of_task FOREIGN KEY (task_id) REFERENCES task (id) ON DELETE CASCADE,
    ADD CONSTRAINT job_follows_job FOREIGN KEY (follows_id) REFERENCES execution_job (task_id) ON DELETE CASCADE
