-- Counts what a person should look at, for the sidebar.
--
-- :most    int  where a count stops
-- returns  executions in quarantine, dead letters
SELECT
    (SELECT count(*) FROM (SELECT FROM execution_quarantine LIMIT %(most)s) held),
    (SELECT count(*) FROM (SELECT FROM execution_delivery WHERE state = 'dead' LIMIT %(most)s) dead)
