-- The two tables of Harbor's main branch, 2.16 (goharbor/harbor c50c7ddd), as its migrations leave them on PostgreSQL,
-- and a third, so that a dump shows that its other tables stay as well. Written from what pg_dump says of them. One
-- column has the type that it had until 2.15.2, which overflows sooner.
CREATE SEQUENCE execution_id_seq AS integer;
CREATE TABLE execution (
    id             integer                     NOT NULL DEFAULT nextval('execution_id_seq'),
    vendor_type    character varying(64)       NOT NULL,
    vendor_id      integer,
    status         character varying(16),
    status_message text,
    trigger        character varying(16)       NOT NULL,
    extra_attrs    json,
    start_time     timestamp without time zone DEFAULT CURRENT_TIMESTAMP,
    end_time       timestamp without time zone,
    revision       integer,
    update_time    timestamp without time zone,
    CONSTRAINT execution_pkey PRIMARY KEY (id)
);
ALTER SEQUENCE execution_id_seq OWNED BY execution.id;
CREATE INDEX idx_execution_start_time ON execution (start_time);
CREATE INDEX idx_execution_vendor_type_vendor_id ON execution (vendor_type, vendor_id);

CREATE SEQUENCE task_id_seq AS integer;
CREATE TABLE task (
    id              integer                     NOT NULL DEFAULT nextval('task_id_seq'),
    execution_id    integer                     NOT NULL,
    job_id          character varying(64),
    status          character varying(16)       NOT NULL,
    status_code     integer                     NOT NULL,
    status_revision integer,                    -- bigint since 2.15.3
    status_message  text,
    run_count       integer,
    extra_attrs     json,
    creation_time   timestamp without time zone DEFAULT CURRENT_TIMESTAMP,
    start_time      timestamp without time zone,
    update_time     timestamp without time zone,
    end_time        timestamp without time zone,
    vendor_type     character varying(64)       NOT NULL,
    CONSTRAINT task_pkey PRIMARY KEY (id),
    CONSTRAINT task_execution_id_fkey FOREIGN KEY (execution_id) REFERENCES execution (id)
);
ALTER SEQUENCE task_id_seq OWNED BY task.id;
CREATE INDEX task_execution_id_idx ON task (execution_id);
CREATE INDEX idx_task_job_id ON task (job_id);
CREATE INDEX idx_task_extra_attrs_report_uuids ON task USING gin (((extra_attrs::jsonb) -> 'report_uuids'));

CREATE TABLE schema_migrations (
    version      bigint  NOT NULL,
    dirty        boolean NOT NULL,
    data_version integer,
    CONSTRAINT schema_migrations_pkey PRIMARY KEY (version)
);
INSERT INTO schema_migrations (version, dirty, data_version) VALUES (190, FALSE, 30);
