-- Finds no execution, and says that there may be more: Harbor has no index on the attributes, so the caller compares the
-- newest executions one by one.
SELECT NULL::bigint, FALSE
