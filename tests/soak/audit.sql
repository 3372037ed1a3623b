-- Records each change of a task that has a job, with the transaction that made it and the name of the session.
--
-- The time of a change is the time of its commit, pg_xact_commit_timestamp(made_in), because no other transaction sees
-- the change before its commit. Needs track_commit_timestamp.
CREATE TABLE soak_change (
    number bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    made_in xid NOT NULL,
    session text NOT NULL,
    task_id bigint NOT NULL,
    execution_id bigint NOT NULL,
    job_id text NOT NULL,
    status text NOT NULL,
    status_code int NOT NULL,
    revision bigint NOT NULL,
    run_count int NOT NULL,
    message text NOT NULL
);

CREATE FUNCTION soak_write_down() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    row task;
BEGIN
    row := CASE WHEN TG_OP = 'DELETE' THEN OLD ELSE NEW END;
    IF row.job_id <> '' THEN
        INSERT INTO soak_change
            (made_in, session, task_id, execution_id, job_id, status, status_code, revision, run_count, message)
        VALUES (
            pg_current_xact_id()::xid, current_setting('application_name'), row.id, row.execution_id, row.job_id,
            CASE WHEN TG_OP = 'DELETE' THEN 'Deleted' ELSE row.status END,
            CASE WHEN TG_OP = 'DELETE' THEN 3 ELSE row.status_code END,
            row.status_revision, row.run_count, row.status_message
        );
    END IF;
    RETURN NULL;
END
$$;

CREATE TRIGGER soak_write_down AFTER INSERT OR UPDATE OR DELETE ON task
    FOR EACH ROW EXECUTE FUNCTION soak_write_down();
