"""Checks of our tables: that they are there, and for how long rows are kept."""

from collections.abc import Iterator

from django.apps import apps
from django.core.checks import CheckMessage, Error, Warning
from django.db import DEFAULT_DB_ALIAS, connection, router
from django.db.models import Index, Model, UniqueConstraint

from harbor_refresh.executions.declarations import of_project
from harbor_refresh.executions.models import Execution
from harbor_refresh.executions.retention.rules import Retention
from harbor_refresh.executions.status import FINAL
from harbor_refresh.executions.text import plural
from harbor_refresh.tasks.checks.facts import LABELS, Facts, run
from harbor_refresh.tasks.checks.registry import PRESENT, Need, check


@check("tables.migrations", "every migration is applied", Need.DATABASE, shown=PRESENT)
def migrations(facts: Facts) -> Iterator[CheckMessage]:
    if missing := facts.unapplied:
        names = ", ".join(missing[:3]) + (", …" if len(missing) > 3 else "")
        yield Error(
            f"Migrations of this program are not applied to the database: {names}.\nNo execution can be started, "
            "no report stored and no status refreshed.",
            "manage.py migrate",
        )


@check("tables.indexes", "every index exists and is valid", Need.DATABASE)
def indexes(facts: Facts) -> Iterator[CheckMessage]:
    """Name each missing index with the statement that makes it, unless migrations are missing."""
    if facts.unapplied:
        return
    found = dict(run("indexes", tables=_tables()))
    for model in _models():
        for index in (*model._meta.indexes, *model._meta.constraints):
            if isinstance(index, Index | UniqueConstraint) and index.name not in found:
                table = model._meta.db_table
                yield Error(
                    f"The index {index.name} of {table} is missing, so its queries read the whole table.",
                    _create(model, index),
                )
    for name, is_valid in sorted(found.items()):
        if not is_valid:
            yield Error(
                f"The index {name} is not valid, so PostgreSQL does not use it: the statement that made it "
                "failed.",
                f"REINDEX INDEX CONCURRENTLY {connection.ops.quote_name(name)};",
            )


@check("tables.retention", "the project has chosen a retention", Need.DATABASE)
def retention(facts: Facts) -> Iterator[CheckMessage]:
    """Tell a project that keeps everything, unless it has said so (`RETENTION_DAYS` is 0)."""
    if "RETENTION_DAYS" in of_project() or not Retention.of_settings().keeps_everything:
        return
    if ended := Execution.objects.filter(status__in=FINAL).count():
        yield Warning(
            f"Nothing is deleted: {plural(ended, 'execution')} {'has' if ended == 1 else 'have'} ended and stay, "
            "with tasks, jobs and results, so the tables grow.",
            "Count what started more than 90 days ago: manage.py harbor delete --older-than 90d --dry-run. Then "
            'set the days kept after the end: HARBOR_REFRESH = {"RETENTION_DAYS": 90}, or 0 to keep everything.',
        )


def _models() -> list[type[Model]]:
    """The models of our tables. What Harbor's tables need to have, `manage.py attach check` says."""
    found = [model for label in LABELS for model in apps.get_app_config(label).get_models()]
    return [one for one in found if one._meta.managed and router.allow_migrate_model(DEFAULT_DB_ALIAS, one)]


def _tables() -> list[str]:
    return sorted({model._meta.db_table for model in _models()})


def _create(model: type[Model], index: Index | UniqueConstraint) -> str:
    """The statement of a migration. An index is made without holding up writers."""
    with connection.schema_editor(collect_sql=True, atomic=False) as editor:
        if isinstance(index, Index):
            editor.add_index(model, index, concurrently=True)  # type: ignore[call-arg]
        else:
            editor.add_constraint(model, index)
        return " ".join(str(statement) for statement in editor.collected_sql)
