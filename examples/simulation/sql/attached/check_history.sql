-- K3 on Harbor's tables: executions whose history is not in the order in which it was written.
--
-- :at_most int  NULL: all of them
-- returns  execution_id, what
--
-- Harbor's cores refresh beside us and write no history, so revisions may be missing, and a row need not begin where the
-- row before it ended. What holds: one row for a revision (a constraint of the table), and the order of the revisions is
-- the order in which the rows were written.
WITH chain AS (
    SELECT execution_id, revision, id, lag(id) OVER (PARTITION BY execution_id ORDER BY revision) AS id_before
    FROM execution_status_change
)
SELECT execution_id, format('revision %%s was written before the revision below it', revision)
FROM chain
WHERE id < id_before
ORDER BY execution_id, revision
LIMIT %(at_most)s
