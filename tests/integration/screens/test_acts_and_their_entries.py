"""No source has an act without its entry, or an entry without its act, because the two commit together."""

from collections.abc import Callable, Mapping
from contextlib import suppress
from types import SimpleNamespace as Sample
from typing import Any

import pytest
from django.db import IntegrityError, connection
from django.test import Client

from harbor_refresh.executions.api import api_tokens
from harbor_refresh.executions.api.access import Scope
from harbor_refresh.executions.lifecycle.creation import NewExecution, create
from harbor_refresh.executions.lifecycle.quarantines import quarantine
from harbor_refresh.executions.lifecycle.reports import Report, report
from harbor_refresh.executions.lifecycle.stops import stop
from harbor_refresh.executions.management.output import Failed
from harbor_refresh.executions.models import (
    ApiToken,
    AuditEntry,
    Delivery,
    Execution,
    Quarantine,
    Subscription,
    Task,
)
from harbor_refresh.executions.models.notifications import State
from harbor_refresh.executions.models.operations import Outcome
from harbor_refresh.executions.news.audit import at_terminal
from harbor_refresh.executions.news.deliveries import subscriptions
from harbor_refresh.tasks.broker.celery_queues import JOBS
from harbor_refresh.tasks.models.state import Pause
from tests.integration.admin_client import act
from tests.integration.command_output import said
from tests.integration.database_state import rows
from tests.integration.executions.api.api_client import Program, token
from tests.integration.operations.actions.sample_bulk import reported, with_jobs

pytestmark = pytest.mark.usefixtures("database", "redis")

PAGES = "/admin/harbor_executions"
LIST = f"{PAGES}/execution/"
SUBMITTED = {"confirmed": "yes"}
TABLES = (Execution, Task, Quarantine, Subscription, Delivery, Pause)

Acts = Mapping[str, Callable[[], object]]


def log_takes_entries(*, does: bool) -> None:
    change = "DROP CONSTRAINT no_entry" if does else "ADD CONSTRAINT no_entry CHECK (FALSE) NOT VALID"
    with connection.cursor() as cursor:
        cursor.execute(f"ALTER TABLE execution_audit {change}")


def stored() -> list[Any]:
    """All that an act may change. The last use of a token is none of that."""
    tokens = list(ApiToken.objects.order_by("pk").values_list("pk", "revoked_at"))
    return [tokens, *(rows(table) for table in TABLES)]


def tables_take_changes(*, do: bool) -> None:
    """A request with a token notes its use, and may do so."""
    statements = [
        "CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS "
        "$$ BEGIN RAISE EXCEPTION 'no change' USING ERRCODE = '23514'; END $$",
        f"CREATE TRIGGER refuse BEFORE INSERT OR UPDATE OF revoked_at ON {ApiToken._meta.db_table} "
        "FOR EACH STATEMENT EXECUTE FUNCTION refuse()",
        *(
            f"CREATE TRIGGER refuse BEFORE INSERT OR UPDATE OR DELETE ON {table._meta.db_table} "
            "FOR EACH STATEMENT EXECUTE FUNCTION refuse()"
            for table in TABLES
        ),
    ]
    with connection.cursor() as cursor:
        cursor.execute("DROP FUNCTION refuse() CASCADE" if do else ";".join(statements))


def entries() -> int:
    """A refresh that the database refused is told in the log: it has an entry, which says that it failed."""
    return AuditEntry.objects.exclude(outcome=Outcome.FAILED).count()


def done_only_with_its_entry(acts: Acts, by: str, origin: str) -> None:
    """While the log takes no entry, no act changes anything. While the tables take no change, no act has an entry.
    Afterwards each act changes something, and has one entry, with the verb and the kind that name the act here."""
    before, entries_before = stored(), entries()
    log_takes_entries(does=False)
    for name, do in acts.items():
        with suppress(IntegrityError, Failed):
            do()
        assert stored() == before, f"{name} was done, and has no entry"
    log_takes_entries(does=True)
    tables_take_changes(do=False)
    for name, do in acts.items():
        with suppress(IntegrityError, Failed):
            do()
        assert entries() == entries_before, f"{name} has an entry, and was not done"
    tables_take_changes(do=True)
    for name, do in acts.items():
        before, entries_before = stored(), entries()
        do()
        assert stored() != before, name
        assert entries() == entries_before + 1, name
        entry = AuditEntry.objects.latest("pk")
        assert f"{entry.verb} {entry.kind}" == name.removesuffix(" of many")
        assert (entry.by, entry.origin, entry.outcome, bool(entry.address)) == (by, origin, "done", True)


@pytest.fixture
def sample(database: str) -> Sample:
    """One row for each act, so that no act depends on another one."""
    names = ("GOING", "ACROSS", "FAILED", "STOPPED", "ENDED", "DRIFTED", "HELD", "TASK", "FAILED_TASK")
    one = {name: with_jobs(1, name)[0] for name in names}
    reported([one["FAILED"], one["FAILED_TASK"]], "Error")
    reported([one["ENDED"]], "Success")
    stop(one["STOPPED"].pk)
    report([Report(one["DRIFTED"].tasks.get().pk, "Success", 1)])
    quarantine([one["HELD"].pk], 5)
    subscription = subscriptions.create("chat", "https://hooks.example.com/harbor")
    made, _ = api_tokens.make("of a program")
    dead = Delivery.objects.create(
        subscription=subscriptions.create("pager", "https://hooks.example.com/pager"),
        execution_id=one["ENDED"].pk,
        vendor_type="ENDED",
        from_status="Running",
        to_status="Success",
        revision=1,
        changed_at=made.created_at,
        state=State.DEAD,
        next_at=None,
        ended_at=made.created_at,
    )
    return Sample(
        going=one["GOING"],
        across=one["ACROSS"],
        failed=one["FAILED"],
        stopped=one["STOPPED"],
        ended=one["ENDED"],
        drifted=one["DRIFTED"],
        held=one["HELD"],
        empty=create(NewExecution("EMPTY")),
        stopped_task=one["TASK"].tasks.get(),
        failed_task=one["FAILED_TASK"].tasks.get(),
        subscription=subscription,
        dead=dead,
        token=made,
    )


def test_an_act_of_the_admin_is_done_with_its_entry_or_not_at_all(admin: Client, sample: Sample) -> None:
    def chosen(verb: str, execution: Execution) -> Callable[[], object]:
        return lambda: act(admin, LIST, f"{verb}", [execution.pk])

    def pressed(page: str, pk: int, verb: str) -> Callable[[], object]:
        return lambda: admin.post(f"{PAGES}/{page}/{pk}/{verb}/", SUBMITTED)

    def listed(page: str, action: str, pk: int) -> Callable[[], object]:
        return lambda: act(admin, f"{PAGES}/{page}/", action, [pk])

    form = {"action": "stop", "select_across": 1, "confirmed": "yes", "index": 0}
    done_only_with_its_entry(
        {
            "stop execution": chosen("stop", sample.going),
            "retry execution": chosen("retry", sample.failed),
            "resume execution": chosen("resume", sample.stopped),
            "refresh execution": chosen("refresh", sample.drifted),
            "delete execution": chosen("remove", sample.ended),
            "stop executions": lambda: admin.post(
                f"{LIST}?vendor=ACROSS", form | {"_selected_action": sample.across.pk}
            ),
            "release quarantine": pressed("execution", sample.held.pk, "release"),
            "stop task": pressed("task", sample.stopped_task.pk, "stop"),
            "retry task": pressed("task", sample.failed_task.pk, "retry"),
            "resend delivery": listed("delivery", "send_again", sample.dead.pk),
            "revoke token": listed("apitoken", "revoke", sample.token.pk),
            "rotate subscription": lambda: admin.post(
                f"{PAGES}/subscription/{sample.subscription.pk}/rotate/",
                SUBMITTED | {"old_secret_seconds": "3600"},
            ),
            "delete subscription": listed("subscription", "delete_chosen", sample.subscription.pk),
            "create token": lambda: admin.post(f"{PAGES}/apitoken/add/", {"name": "new", "may_read": "on"}),
        },
        by="operator",
        origin="admin",
    )


def test_an_act_of_the_api_is_done_with_its_entry_or_not_at_all(sample: Sample) -> None:
    program = Program(token(*Scope, name="runners"))

    def sent(path: str, body: Any = None, method: str = "POST") -> Callable[[], object]:
        return lambda: program.send(method, path, body)

    def one(execution: Execution, verb: str) -> Callable[[], object]:
        return sent(f"/executions/{execution.pk}/{verb}")

    done_only_with_its_entry(
        {
            "stop execution": one(sample.going, "stop"),
            "retry execution": one(sample.failed, "retry"),
            "resume execution": one(sample.stopped, "resume"),
            "refresh execution": one(sample.drifted, "refresh"),
            "delete execution": sent(f"/executions/{sample.ended.pk}", method="DELETE"),
            "finish execution": sent(f"/executions/{sample.empty.pk}/finish", {"status": "Success"}),
            "stop executions": sent("/executions/stop", {"vendor_type": "ACROSS"}),
            "stop task": sent(f"/tasks/{sample.stopped_task.pk}/stop"),
            "retry task": sent(f"/tasks/{sample.failed_task.pk}/retry"),
            "resend delivery": sent(f"/deliveries/{sample.dead.pk}/resend"),
            "create subscription": sent("/subscriptions", {"name": "new", "url": "https://hooks.example.com/new"}),
            "change subscription": sent(f"/subscriptions/{sample.subscription.pk}", {"name": "other"}, "PATCH"),
            "rotate subscription": sent(f"/subscriptions/{sample.subscription.pk}/rotate-secret", {}),
            "delete subscription": sent(f"/subscriptions/{sample.subscription.pk}", method="DELETE"),
            "pause queue": sent("/queue/pause", {"queue": JOBS}),
        },
        by=f"runners (token {ApiToken.objects.latest('pk').pk})",
        origin="api",
    )
    texts = " ".join(map(str, AuditEntry.objects.values_list("detail", "target", "by")))
    secrets = [program.token, *Subscription.objects.values_list("secret", flat=True)]
    assert not [one for one in secrets if one in texts]


def test_a_stop_over_the_api_that_changes_nothing_says_so_and_one_of_nothing_has_no_entry(sample: Sample) -> None:
    program = Program(token(*Scope))
    for one in (sample.empty, sample.going, sample.ended):
        program.post(f"/executions/{one.pk}/stop")
    program.post("/executions/999999/stop", status=404)
    outcomes = AuditEntry.objects.filter(verb="stop").order_by("pk").values_list("outcome", flat=True)
    assert list(outcomes) == ["done", "done", "unchanged"]


def test_an_act_of_a_terminal_is_done_with_its_entry_or_not_at_all(sample: Sample) -> None:
    def typed(*words: object) -> Callable[[], object]:
        return lambda: said(*words)

    done_only_with_its_entry(
        {
            "stop executions": typed("harbor", "stop", sample.going.pk),
            "retry executions": typed("harbor", "retry", sample.failed.pk),
            "stop executions of many": typed("harbor", "stop", "--vendor", "ACROSS", "--yes"),
            "release quarantine": typed("harbor", "quarantine", "--release", sample.held.pk),
            "create token": typed("harbor", "token", "new"),
            "pause queue": typed("harbor", "pause"),
        },
        by=at_terminal().name,
        origin="terminal",
    )
