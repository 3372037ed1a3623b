-- Deletes a job with its task. The database does it, because `executions` deletes tasks and does not know of jobs.
ALTER TABLE execution_job
    ADD CONSTRAINT job_of_task FOREIGN KEY (task_id) REFERENCES task (id) ON DELETE CASCADE
