"""Whether this service is attached to the database of a running Harbor (`REFRESH_ATTACH=harbor`).

Attached, `execution` and `task` are Harbor's tables, in the schema `public`: the service reads them, writes what a
refresh writes, and changes nothing else about them. Its own tables are in the schema `SCHEMA`. The statements that
differ then are in the folders `sql/attached` (executions/sql/__init__.py).

Everything asks `is_attached()` at the moment of the work. Only the models ask at their import, because a foreign
key has its constraint or has it not.
"""

from django.conf import settings

from harbor_refresh.executions.conf.declarations import is_service

HARBOR = "harbor"
#: Our own tables, and those of Django.
SCHEMA = "harbor_refresh"
#: What a connection needs: a table that we make is made in our schema, and Harbor's two are found in its own.
SEARCH_PATH = f"{SCHEMA},public"
#: The models whose tables are Harbor's.
HARBORS_MODELS = frozenset({"execution", "task"})


def is_attached() -> bool:
    return is_service() and getattr(settings, "REFRESH_ATTACH", "") == HARBOR
