"""The verbs of this app: sweep and token."""

from datetime import timedelta
from typing import Any

from django.db import IntegrityError
from django.utils import timezone

from harbor_refresh.executions.api import api_tokens
from harbor_refresh.executions.api.api_tokens import Scope
from harbor_refresh.executions.attached.ownership import Operation, refuse_if_attached
from harbor_refresh.executions.database import violates
from harbor_refresh.executions.lifecycle import retention
from harbor_refresh.executions.lifecycle.sweep import sweep
from harbor_refresh.executions.management.command import Subcommand, argument, count
from harbor_refresh.executions.management.output import (
    Answer,
    Failed,
    Misused,
    bar_shown,
    refuse_second_run,
    table,
)
from harbor_refresh.executions.models import ApiToken
from harbor_refresh.executions.news.audit import Target, Word, at_terminal, note, noted
from harbor_refresh.executions.text import is_text, plural, shown


def _sweep(options: dict[str, Any]) -> Answer:
    refuse_if_attached(Operation.DELETE)
    if options["dry_run"]:
        return _dry_run()
    with bar_shown("deleting") as show:
        outcome = sweep(progress=lambda now: show(now.executions))
    refuse_second_run("sweep", outcome)
    note(at_terminal(), Word.SWEEP, Target.EXECUTION, count=outcome.executions)
    data = {
        "dry_run": False,
        "executions": outcome.executions,
        "tasks": outcome.tasks,
        "old_rows": outcome.forgotten,
        "passed": {"executions": outcome.passed, "example": outcome.example},
        "failed": {step: str(error) for step, error in outcome.failed.items()},
    }
    shown = [
        f"Deleted {plural(outcome.executions, 'execution')} with {plural(outcome.tasks, 'task')}, "
        f"and {plural(sum(outcome.forgotten.values()), 'old row')}."
    ]
    if outcome.passed:
        why = f"because the database does not let them be deleted, such as execution {outcome.example}"
        shown.append(f"{outcome.passed:,} more stay, {why}.")
    failure = "; ".join(f"the step {step!r} failed: {error}" for step, error in outcome.failed.items())
    return Answer(data, shown, failure)


def _dry_run() -> Answer:
    with bar_shown("counting") as show:
        found, passed = retention.count(retention.Retention.of_settings(), show)
    executions, tasks = (sum(one[what] for one in found.values()) for what in ("executions", "tasks"))
    doomed = f"{plural(executions, 'execution')} with {plural(tasks, 'task')}"
    shown: list[Any] = [f"Would delete {doomed}. Dry run: nothing was written."]
    rows = [(vendor, *one.values()) for vendor, one in found.items()]
    shown += [table(("vendor", "executions", "tasks"), rows)] if rows else []
    shown += [f"{number:,} more stay, because rows name them in {column}." for column, number in passed.items()]
    return Answer({"dry_run": True, "found": found}, shown)


MAX_NAME = ApiToken._meta.get_field("name").max_length or 0


def _token(options: dict[str, Any]) -> Answer:
    """Make a token and print it. It is not stored, so it cannot be printed again."""
    name, days, may = options["name"], options["days"], sorted(options["may"] or [Scope.READ.value])
    if not is_text(name, MAX_NAME, at_least=1):
        raise Misused(f"the name takes 1 to {MAX_NAME} characters, and got {shown(name)}")
    expires_at = timezone.now() + timedelta(days=days) if days else None
    scopes = {scope.value: scope.value in may for scope in Scope}
    try:
        with noted(at_terminal(), Word.CREATE, Target.TOKEN) as entry:
            row, token = api_tokens.make(name, **scopes, expires_at=expires_at, created_by="manage.py")
            entry.target, entry.detail = row.pk, f"{name}: {', '.join(may)}"
    except IntegrityError as exc:
        if not violates(exc, "execution_api_token_name_key"):
            raise
        raise Failed(f"There is a token named {shown(name)} already. Choose another name.") from exc
    return Answer({"id": row.pk, "name": name, "token": token, "may": may, "expires_at": expires_at}, [token])


SWEEP = "delete what retention does not keep"
DRY_RUN = "only count what would be deleted; write nothing"
SCOPES = [scope.value for scope in Scope]
OF_A_TOKEN = (
    argument("name", help="a unique name that says what uses the token"),
    argument("--may", action="append", choices=SCOPES, help="a scope; may be repeated (default: read)"),
    argument("--days", type=count(1, 3_650), help="expire after this many days (default: never)"),
)
VERBS = {
    "sweep": Subcommand(SWEEP, _sweep, [argument("--dry-run", action="store_true", help=DRY_RUN)]),
    "token": Subcommand("create an API token and print it once", _token, OF_A_TOKEN),
}
