-- Has jobs wait for another run: running -> waiting. Their runs are locked (outcomes.py).
--
-- :task_ids bigint[]  :revisions bigint[]  :delays float8[]  seconds from now; NULL: at once
-- :args text[]  :kwargs text[]  JSON, if the run has asked for others; else NULL. What it takes of other jobs is the
--                               first of `args` by then, so the job takes nothing any more
-- :retries int[]  how many retries of Celery's lead to that run; NULL: as many as before
UPDATE execution_job j
SET
    state = 'waiting',
    revision = g.revision,
    node = NULL,
    process = NULL,
    check_in = NULL,
    admitted = j.limit_key IS NULL,
    turn = 0,
    not_before = now() + make_interval(secs => g.delay),
    args = coalesce(g.args::jsonb, j.args),
    kwargs = coalesce(g.kwargs::jsonb, j.kwargs),
    takes = CASE WHEN g.args IS NULL THEN j.takes ELSE 'nothing' END,
    retries = coalesce(g.retries, j.retries)
FROM unnest(
    %(task_ids)s::bigint[], %(revisions)s::bigint[], %(delays)s::float8[], %(args)s::text[], %(kwargs)s::text[],
    %(retries)s::int[]
) AS g (task_id, revision, delay, args, kwargs, retries)
WHERE j.task_id = g.task_id
