-- The role of Harbor Refresh in the database of a Harbor, with all the rights that it needs, and no others.
--
--   psql -v ON_ERROR_STOP=1 --single-transaction -f deploy/attach/rights.sql "$HARBORS_DATABASE_URL"
--   psql -c '\password harbor_refresh' "$HARBORS_DATABASE_URL"
--
-- Run it as a superuser, or as the owner of the tables with CREATEROLE. The way back is rights_back.sql.

CREATE ROLE harbor_refresh LOGIN;

-- Our tables stand in a schema of their own. It has the name of the role, so the usual search_path of PostgreSQL
-- finds it first, behind every pooler.
CREATE SCHEMA harbor_refresh AUTHORIZATION harbor_refresh;

GRANT USAGE ON SCHEMA public TO harbor_refresh;
GRANT SELECT ON public.execution, public.task TO harbor_refresh;
-- What a refresh writes. It is also what a row lock takes.
GRANT UPDATE (status, revision, update_time, end_time) ON public.execution TO harbor_refresh;
-- Reconcile asks which transactions of Harbor's cores are open.
GRANT pg_read_all_stats TO harbor_refresh;
