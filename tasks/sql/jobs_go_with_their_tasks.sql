-- Deletes a job with its task, and a job with the one it follows, whatever deletes the task: `executions` deletes tasks
-- and knows of no jobs.
ALTER TABLE execution_job
    ADD CONSTRAINT job_of_task FOREIGN KEY (task_id) REFERENCES task (id) ON DELETE CASCADE,
    ADD CONSTRAINT job_follows_job FOREIGN KEY (follows_id) REFERENCES execution_job (task_id) ON DELETE CASCADE
