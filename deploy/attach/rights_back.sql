-- Takes back what rights.sql has given, with every table of Harbor Refresh. Nothing of Harbor's changes.
--
--   psql -v ON_ERROR_STOP=1 --single-transaction -f deploy/attach/rights_back.sql "$HARBORS_DATABASE_URL"
--
-- Run it as a superuser, or as the role that ran rights.sql.

DROP SCHEMA IF EXISTS harbor_refresh CASCADE;
REVOKE ALL ON public.execution, public.task FROM harbor_refresh;
REVOKE ALL (status, revision, update_time, end_time) ON public.execution FROM harbor_refresh;
REVOKE ALL ON SCHEMA public FROM harbor_refresh;
DROP ROLE harbor_refresh;
