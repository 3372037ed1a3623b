-- The role of Harbor Refresh in the database of a Harbor, with all the rights that it needs, and no others.
--
--   psql -v ON_ERROR_STOP=1 --single-transaction -f deploy/attach/rights.sql "$HARBORS_DATABASE_URL"
--   psql -c '\password harbor_refresh' "$HARBORS_DATABASE_URL"
--
-- Run it as a superuser; or, where there is none, as the administrator of a managed PostgreSQL: a role that has
-- CREATEROLE, may create in this database, may grant pg_monitor, and owns Harbor's tables or is a member of the role
-- that does. The way back is rights_back.sql, run as the same role.

CREATE ROLE harbor_refresh LOGIN;
-- An administrator without this could neither make a schema for the role, nor drop it, nor dump its tables.
GRANT harbor_refresh TO CURRENT_USER;

-- Our tables stand in a schema of their own. It has the name of the role, so the usual search_path of PostgreSQL
-- finds it first, behind every pooler.
CREATE SCHEMA harbor_refresh AUTHORIZATION harbor_refresh;

-- PUBLIC has this right unless it was taken away. Without a right to grant it, PostgreSQL warns and goes on.
GRANT USAGE ON SCHEMA public TO harbor_refresh;
GRANT SELECT ON public.execution, public.task TO harbor_refresh;
-- What a refresh writes. It is also what a row lock takes.
GRANT UPDATE (status, revision, update_time, end_time) ON public.execution TO harbor_refresh;

-- Reconcile asks which transactions of Harbor's cores are open. From PostgreSQL 16 on, a managed one may let its
-- administrator grant pg_monitor alone, which includes pg_read_all_stats.
DO $$
BEGIN
    GRANT pg_read_all_stats TO harbor_refresh;
EXCEPTION WHEN insufficient_privilege THEN
    GRANT pg_monitor TO harbor_refresh;
END
$$;
