-- Brings Harbor's executions to what the words of their tasks say, as Harbor's own refresh does, and writes our history.
--
-- Parameters and result are those of ../refresh_executions.sql. None of Harbor's executions has a parent.
--
-- It writes status, revision + 1, update_time (UTC, in whole seconds) and end_time of each execution that has a rollup,
-- even if nothing differs: Harbor's cores refresh beside us and write only if the revision is the one they have read, so
-- it fences off a core that read the tasks before our lock. The history has only what differs.
--
-- Revisions go back and jump, because the cores write them, too, and because some of Harbor's writes leave them alone. A
-- row of the history has the new revision of the execution, or the number after the newest row of ours if that is higher.
WITH compared AS MATERIALIZED (
    SELECT
        e.id,
        coalesce(e.status, '') AS from_status,
        r.status,
        r.end_time,
        (e.status, e.end_time) IS DISTINCT FROM (r.status, r.end_time) AS differs
    FROM execution e
    JOIN execution_rollup(%(ids)s::bigint[]) r ON r.execution_id = e.id
    WHERE e.id = ANY(%(ids)s::bigint[])
),
written AS (
    UPDATE execution e
    SET
        status = c.status,
        end_time = c.end_time,
        revision = coalesce(e.revision, 0) + 1,
        update_time = date_trunc('second', now() AT TIME ZONE 'UTC')
    FROM compared c
    WHERE e.id = c.id
    RETURNING e.id, e.revision, c.from_status, c.status AS to_status, c.differs
),
history AS (
    INSERT INTO execution_status_change (execution_id, revision, from_status, to_status, at, told)
    SELECT
        w.id,
        greatest(
            w.revision,
            (SELECT max(h.revision) + 1 FROM execution_status_change h WHERE h.execution_id = w.id)
        ),
        w.from_status, w.to_status, now(),
        NOT EXISTS (SELECT FROM execution_subscription WHERE enabled AND missing_since IS NULL)
    FROM written w
    WHERE w.differs
    RETURNING told
),
done AS MATERIALIZED (
    SELECT count(*) AS changed, coalesce(NOT bool_and(told), FALSE) AS untold FROM history
)
SELECT d.changed, d.untold, FALSE
FROM done d
CROSS JOIN LATERAL count_execution_refresh(
    d.changed,
    %(count)s - d.changed,
    %(waited)s::float + date_part('epoch', clock_timestamp() - statement_timestamp()),
    (
        SELECT array_agg(date_part('epoch', clock_timestamp() - end_time AT TIME ZONE 'UTC'))
        FROM compared
        WHERE differs AND end_time > '0002-01-01'
    )
)
