-- Attached, tasks are Harbor's, and there are no jobs.
SELECT 1
