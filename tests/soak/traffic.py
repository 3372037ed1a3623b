"""The calls of the public functions while faults happen: jobs and their executions, and plain reports."""

import threading
import traceback
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from random import Random
from typing import Any

from celery import chain, chord
from django.db import Error as DjangoDatabaseError
from django.db import connection, transaction
from django.db.models.functions import Now

from harbor_refresh.executions.errors import AlreadyUnderWay, RefreshError
from harbor_refresh.executions.lifecycle.creation import NewExecution, NewTask
from harbor_refresh.executions.lifecycle.reports import Report, report
from harbor_refresh.executions.lifecycle.stops import stop
from harbor_refresh.executions.models import Execution, Task
from harbor_refresh.executions.status import FINAL_CODE
from harbor_refresh.tasks.broker.celery_queues import JOBS
from harbor_refresh.tasks.jobs import TrackedExecution, start
from harbor_refresh.tasks.models.job import Node
from tests.created import create_many
from tests.integration.sample_executions import delete
from tests.soak import jobs as team
from tests.soak.evidence import Diary

#: The errors that a caller must expect when servers are down.
EXPECTED = (RefreshError, DjangoDatabaseError, Execution.DoesNotExist)
STATUSES = ("Pending", "Scheduled", "Running", "Stopped", "Error", "Success", "Success")
PLAIN_EXECUTIONS = 300
#: Nothing is started while so many jobs have not ended. Else the workers of a busy machine fall behind ever more,
#: and the end of the soak is a backlog and not a fault.
MOST_UNFINISHED = 1_500 if team.IS_ABOUT_LIMITS else 300
#: So many nodes there are as rows, so that as much is sent as to so many workers.
ROWS = 200 if team.IS_ABOUT_LIMITS else 0
FIRST_ROW = 10**12
#: How often each act comes, relative to the others.
ACTS = {
    "start": 60,
    "stop": 8,
    "retry": 12,
    "delete": 4,
    "start and roll back": 2,
    "stop and roll back": 4,
    "delete and roll back": 3,
}


class RollBack(Exception):
    """Raised by the traffic to roll back a transaction."""


def some_jobs(random: Random, visibility_timeout: float) -> list[Any]:
    """Random signatures, and chains and chords of signatures."""
    short, long = random.uniform(0.5, 2), visibility_timeout + random.uniform(1, 4)
    value = [f"{random.randrange(10**9)}" for _ in range(3)]
    key = random.choice(["k", f"{random.randrange(1_000)}"] if team.IS_ABOUT_LIMITS else "kl")
    makers: list[tuple[float, Callable[[], Any]]] = [
        (6, lambda: team.plain.s(random.choice([0.0, 0.05, 0.3]))),
        (2, lambda: team.plain.s(0.0).set(countdown=short)),
        (2, lambda: team.plain.s(0.0).set(countdown=long)),
        (2, lambda: team.pages.s(1, random.choice([2, 3, 4]), 0)),
        (2, lambda: team.pages.s(1, 3, random.choice([short, short, long]))),
        (2, lambda: team.flaky.s(random.choice([0, 1, 2]))),
        (1, team.fails.s),
        (2, lambda: chain(team.gives.s(value[0]), team.takes.s(value[0]))),
        (2, lambda: chain(team.gives.s(value[0]), team.hands_on.s(*value[:2]), team.takes.s(value[1]))),
        (1, lambda: chain(team.fails.s(), team.plain.si(0.0))),
        (2, lambda: chord([team.gives.s(one) for one in value], team.gathers.s(*value))),
        (0.5, lambda: chord([team.fails.s(), team.gives.s(value[0])], team.plain.si(0.0))),
        (60 if team.IS_ABOUT_LIMITS else 2, lambda: team.limited.s(key, random.uniform(0.2, 3))),
        (2, lambda: team.only_one.s(random.choice("vwxyz"), random.uniform(0, 1))),
        (0.7, lambda: team.steady.s(random.uniform(3, 7))),
        (0.7, lambda: team.deadly.s(random.choice([1, 1, 2, 5]))),
        (0.3, team.too_long.s),
        (0.3, team.soft.s),
    ]
    weights = [weight for weight, _ in makers]
    return [make() for _, make in random.choices(makers, weights, k=random.choice([1, 1, 2, 4, 8]))]


class Traffic:
    def __init__(self, seed: int, diary: Diary, *, visibility_timeout: float) -> None:
        self.seed = seed
        self.diary = diary
        self.visibility_timeout = visibility_timeout
        self.done: Counter[str] = Counter()
        self.surprises: list[str] = []
        self._started: list[int] = []
        self._over = threading.Event()
        self._threads = [
            threading.Thread(target=self._loop, args=(act, f"{seed} {act.__name__} {number}"), daemon=True)
            for act, number in ((self._ask, 0), (self._ask, 1), (self._report, 0))
        ]
        if ROWS:
            self._threads.append(threading.Thread(target=self._beat_for_rows, name="rows", daemon=True))
        created = create_many(NewExecution("SOAK_PLAIN", tasks=[NewTask()] * 3) for _ in range(PLAIN_EXECUTIONS))
        self._plain = [one.pk for one in created]
        self._tasks = list(Task.objects.filter(execution_id__in=self._plain).values_list("pk", flat=True))

    def begin(self) -> None:
        for thread in self._threads:
            thread.start()

    def end(self) -> None:
        self._over.set()
        for thread in self._threads:
            thread.join(120)
            if thread.is_alive():
                self.surprises.append(f"a call of {thread.name} has not returned within two minutes")

    def _loop(self, act: Callable[[Random], None], seed: str) -> None:
        random = Random(seed)
        while not self._over.is_set():
            act(random)
            self._over.wait(random.uniform(0.05, 0.6 if act == self._ask else 0.2))
        connection.close()

    def _beat_for_rows(self) -> None:
        """Beat for the nodes that are rows, and delete them at the end."""
        ids = range(FIRST_ROW, FIRST_ROW + ROWS)
        while not self._over.wait(1):
            with suppress(*EXPECTED):
                Node.objects.bulk_create(
                    [Node(pk=pk, name=f"{pk}@rows", slots=4, queues=[JOBS], heard_at=Now()) for pk in ids],
                    update_conflicts=True,
                    unique_fields=["id"],
                    update_fields=["heard_at"],
                )
                continue
            connection.close()
        Node.objects.filter(pk__in=ids).delete()
        connection.close()

    def _call(self, what: str, call: Callable[[], object]) -> tuple[str, object]:
        """Make the call; return its outcome and its value. A raw error of a library is a surprise."""
        outcome, value = "returned", None
        try:
            value = call()
        except RollBack:
            outcome = "rolled back"
        except AlreadyUnderWay:
            outcome = "refused"
        except EXPECTED as exc:
            outcome = "raised"
            self.diary.note("raised", call=what, error=f"{type(exc).__name__}: {exc}"[:300])
            if isinstance(exc, DjangoDatabaseError):
                connection.close()
                self._over.wait(0.2)
        except Exception:
            outcome = "raised"
            self.surprises.append(f"{what}: {traceback.format_exc()}")
            connection.close()
        self.done[what if outcome == "returned" else f"{what} ({outcome})"] += 1
        return outcome, value

    def _ask(self, random: Random) -> None:
        """Act at random. The random numbers are taken before the act, so that they do not depend on its
        outcome."""
        what = random.choices(list(ACTS), list(ACTS.values()))[0]
        signatures = some_jobs(random, self.visibility_timeout)
        newest = int(random.triangular(1, 40, 3))
        if what.startswith("start") and self._is_behind():
            self.done["start (put off)"] += 1
        elif what.startswith("start"):
            _, execution = self._call(what, lambda: self._start(signatures, roll_back=what != "start"))
            if isinstance(execution, int):
                self._started.append(execution)
        elif len(self._started) >= newest:
            self._act_on(self._started[-newest], what)

    def _is_behind(self) -> bool:
        """Whether many jobs have not ended. If the database does not answer, the caller's next call says so."""
        with suppress(*EXPECTED):
            return Task.objects.filter(vendor_type="SOAK", status_code__lt=FINAL_CODE).count() > MOST_UNFINISHED
        connection.close()
        return False

    def _start(self, signatures: list[Any], *, roll_back: bool) -> int:
        if not roll_back:
            return start("SOAK", jobs=signatures).pk
        with transaction.atomic():
            start("SOAK", jobs=signatures)
            raise RollBack

    def _act_on(self, execution: int, what: str) -> None:
        verb, *rolls_back = what.split(" and ")
        acts: dict[str, Callable[[], object]] = {
            "stop": lambda: TrackedExecution.objects.get(pk=execution).stop(),
            "retry": lambda: TrackedExecution.objects.get(pk=execution).retry_failed(),
            "delete": lambda: delete([execution]),
        }

        def act() -> None:
            if not rolls_back:
                acts[verb]()
                return
            with transaction.atomic():
                acts[verb]()
                raise RollBack

        # the outcome of a call that raised is not known: the judge assumes that it may have had its effect
        outcome, _ = self._call(what, act)
        if rolls_back:
            outcome = "rolled back"
        self.diary.note("asked", ask=verb, execution=execution, outcome=outcome)

    def _report(self, random: Random) -> None:
        revisions = [0, 1, 1, 2, 3, 4]
        reports = [
            Report(random.choice(self._tasks), random.choice(STATUSES), random.choice(revisions))
            for _ in range(random.choice([1, 1, 5, 50]))
        ]
        chosen = random.choice(self._plain)
        match random.random():
            case share if share < 0.94:
                self._call("report", lambda: report(reports))
            case share if share < 0.98:
                self._call("stop without jobs", lambda: stop(chosen))
            case _:
                self._call("delete without jobs", lambda: delete([chosen]))
                with suppress(ValueError):
                    self._plain.remove(chosen)
