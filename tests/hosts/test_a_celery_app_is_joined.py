"""`connect(app)` adds to the Celery app of a project, and changes nothing that the project has set."""

from pathlib import Path
from typing import Any

import pytest

from harbor_refresh.tasks.broker.celery_queues import ROUTES
from harbor_refresh.tasks.pipeline.schedule import ROWS
from tests import pages
from tests.hosts.host import Host

JOINED = """
from harbor_refresh.tasks.broker.celery_app import connect

connect(app)
"""
LOOK = """
from celery import current_app as app
from harbor_refresh.tasks.broker.celery_queues import ROUTES

app.loader.import_default_modules()

def goes_to(name):
    return app.amqp.router.route({}, name)["queue"].name

print(json.dumps({
    "ours": {name: goes_to(name) for name in ROUTES},
    "unknown": sorted(set(ROUTES) - set(app.tasks)),
    "theirs": [goes_to(name) for name in ("shop.pack", "tasks.pack", "other")],
    "schedule": {name: [one["task"], str(one["schedule"])] for name, one in app.conf.beat_schedule.items()},
    "default": app.conf.task_default_queue,
}))
"""
OURS = {name: route["queue"] for name, route in ROUTES.items()}
#: Every form that Celery takes, and where a task of each name goes by it: of the project, of a root module `tasks`
#: of the project, and of neither.
THEIR_ROUTES: dict[str, tuple[str, list[str]]] = {
    "a dictionary": ('{"shop.*": {"queue": "shop"}}', ["shop", "shop.default", "shop.default"]),
    "every name": ('{"*": {"queue": "all"}}', ["all", "all", "all"]),
    "a list": ('[{"tasks.*": {"queue": "old"}}, "shop.routes.of_shop"]', ["by function", "old", "by function"]),
    "a list of pairs": ('([("shop.*", {"queue": "shop"}), ("*", "rest")],)', ["shop", "rest", "rest"]),
    "nothing": ("None", ["shop.default", "shop.default", "shop.default"]),
}
ROUTER = """
def of_shop(name, args, kwargs, options, task=None, **rest):
    return {"queue": "by function"}
"""


@pytest.mark.parametrize("routes", THEIR_ROUTES)
def test_our_tasks_go_to_our_queues_and_theirs_where_they_went(routes: str, tmp_path: Path) -> None:
    joins(routes, tmp_path)


def joins(routes: str, folder: Path, **options: Any) -> None:
    """Join a project with routes and a schedule of its own. See that ours are there, and that its own stay."""
    given, theirs = THEIR_ROUTES[routes]
    sweep = {"Sweep": {"task": "shop.sweep", "schedule": 5}}
    settings = f"CELERY_TASK_ROUTES = {given}\nCELERY_BEAT_SCHEDULE = {sweep}"
    seen = Host(folder, "none", celery=JOINED, settings=settings, routes=ROUTER, **options).ask(LOOK)
    assert (seen["ours"], seen["unknown"], seen["theirs"]) == (OURS, [], theirs)
    assert seen["default"] == "shop.default"
    # an entry of the project that has the name of one of ours stays
    assert seen["schedule"] == {row.name: [row.task, str(row.seconds)] for row in ROWS} | {
        "Sweep": ["shop.sweep", "5"]
    }


def test_a_route_of_the_project_for_one_of_our_tasks_stays(tmp_path: Path) -> None:
    settings = "CELERY_TASK_ROUTES = {'tasks.sweep': {'queue': 'at night'}}"
    seen = Host(tmp_path, "none", celery=JOINED, settings=settings).ask(LOOK)
    assert seen["ours"] == OURS | {"tasks.sweep": "at night"}


def test_a_project_with_django_celery_beat_has_the_schedule_in_its_rows(tmp_path: Path) -> None:
    apps = ["django.contrib.admin", "django_celery_beat"]
    assert Host(tmp_path, "none", celery=JOINED, apps=apps).ask(LOOK)["schedule"] == {}


def test_an_app_that_is_configured_already_is_joined_as_well(tmp_path: Path) -> None:
    early = (
        f"app.conf.update(task_routes={{'shop.*': {{'queue': 'shop'}}}})\nassert app.conf.task_routes\n{JOINED}"
    )
    seen = Host(tmp_path, "none", celery=early).ask(LOOK)
    assert (seen["ours"], seen["theirs"][0]) == (OURS, "shop")


def test_our_tasks_do_not_depend_on_the_options_of_the_project(tmp_path: Path) -> None:
    settings = """
        CELERY_TASK_ACKS_LATE = CELERY_TASK_REJECT_ON_WORKER_LOST = CELERY_TASK_IGNORE_RESULT = False
        CELERY_TASK_RETRY_ON_WORKER_LOST = True
        CELERY_TASK_DEFAULT_PRIORITY = 5
        CELERY_TASK_DEFAULT_RATE_LIMIT = "1/m"
        CELERY_TASK_SOFT_TIME_LIMIT, CELERY_TASK_TIME_LIMIT = 60, 90
    """
    options = """
        from celery import current_app
        from harbor_refresh.tasks.broker.celery_queues import ROUTES

        names = ("acks_late", "reject_on_worker_lost", "retry_on_worker_lost", "ignore_result")
        names += ("priority", "rate_limit")
        tasks = {name: current_app.tasks[name] for name in ROUTES}
        print(json.dumps({name: [getattr(task, one) for one in names] for name, task in tasks.items()}))
    """
    host = Host(tmp_path, "none", celery=JOINED, settings=settings)
    # the cycles of the older designs are not acknowledged at all
    ours = [True, True, False, True, 0, ""]
    expected = dict.fromkeys(ROUTES, ours) | {
        "tasks.run_cycle": [False, *ours[1:]],
        "tasks.act_on_many": [*ours[:4], 5, "1/m"],  # a job, which may be repeated
    }
    assert host.ask(options) == expected


TRANSPORTS = """
from celery import Celery, current_app
from kombu import Connection, pools

def transport(connection):
    found = connection.get_transport_cls()
    return f"{found.__module__}.{found.__name__}"

def transports(connection):
    pooled = pools.connections[connection].acquire(block=True)
    found = [transport(connection), transport(connection.clone()), transport(pooled)]
    pooled.switch(f"{connection.transport_cls}://b.shop//")  # as kombu does if the first server is down
    return [*found, transport(pooled)]

apps = [Celery("other", set_as_current=False), current_app]
print(json.dumps({
    scheme: [transports(Connection(f"{scheme}://a.shop//"))]
    + [transports(app.connection_for_write(f"{scheme}://a.shop//")) for app in apps]
    for scheme in ("amqp", "pyamqp", "amqps", "redis")
}))
"""


@pytest.mark.parametrize("celery", [JOINED, f"assert app.amqp\n{JOINED}"], ids=["joined", "joined after its use"])
def test_the_connections_of_the_app_are_mended_and_no_others(celery: str, tmp_path: Path) -> None:
    """Of the program itself, of another Celery app, and of the app that is joined: a connection, its copy, one of
    its pool, and the latter when it has gone on to the next server."""
    seen = Host(tmp_path, "none", celery=celery).ask(TRANSPORTS)
    kombus, mended = "kombu.transport.pyamqp", "harbor_refresh.tasks.broker.amqp_transport"
    plain, secured = "Transport", "SSLTransport"
    for scheme, name in {"amqp": plain, "pyamqp": plain, "amqps": secured}.items():
        assert seen[scheme] == [[f"{kombus}.{name}"] * 4] * 2 + [[f"{mended}.{name}"] * 4]
    ours = ["harbor_refresh.tasks.broker.redis_transport.Transport"] * 4
    assert seen["redis"] == [["kombu.transport.redis.Transport"] * 4] * 2 + [ours]


def test_a_project_gets_the_parts_of_our_workers_by_the_lines_of_the_page(tmp_path: Path) -> None:
    lines = pages.code(
        pages.read("docs/howto/existing_project.md"),
        "python",
        "# shop/celery.py\nfrom harbor_refresh.redis_transport",
    )
    look = """
        from celery import current_app as app
        from kombu import Connection
        from kombu.utils.imports import symbol_by_name

        connections = Connection("redis://a.shop/0"), app.connection_for_read("redis://a.shop/0")
        found = symbol_by_name(app.conf.worker_consumer), *(one.get_transport_cls() for one in connections)
        print(json.dumps([one.__module__ for one in found]))
    """
    without, with_them = (
        Host(tmp_path / name, "none", celery=celery).ask(look)
        for name, celery in (("without", JOINED), ("with", JOINED + lines))
    )
    transports = ["kombu.transport.redis", *["harbor_refresh.tasks.broker.redis_transport"] * 3]
    assert without == ["celery.worker.consumer.consumer", *transports[:2]]
    assert with_them == ["harbor_refresh.consumer", *transports[2:]]


def test_a_class_of_the_project_for_the_connections_of_its_app_stays(tmp_path: Path) -> None:
    own = "from celery.app.amqp import AMQP\n\nclass Own(AMQP):\n    pass\n\napp.amqp_cls = Own\n"
    seen = Host(tmp_path, "none", celery=own + JOINED).ask("""
        from celery import current_app

        found = current_app.connection_for_write("amqp://a.shop//").get_transport_cls()
        print(json.dumps([type(current_app.amqp).__name__, found.__module__]))
    """)
    assert seen == ["Own", "kombu.transport.pyamqp"]


def problems(host: Host, **variables: str) -> dict[str, Any]:
    """What the checks find: the message of each id."""
    program = """
        from django.core.checks import run_checks
        print(json.dumps({one.id: [one.msg, one.hint] for one in run_checks()}))
    """
    found: dict[str, Any] = host.ask(program, **({"CELERY_BROKER_URL": ""} | variables))
    return found


SOUND = """
CELERY_WORKER_PREFETCH_MULTIPLIER = 1
"""
#: What is added to a project without a fault, and the ids of what is found then. The text is in the answer.
FAULTS: dict[str, tuple[dict[str, Any], str, str]] = {
    "settings that are no dictionary": ({"settings": "HARBOR_REFRESH = ['MAX_ATTEMPTS']"}, "E001", "is a list"),
    "an unknown name": ({"settings": "HARBOR_REFRESH = {'MAX_TRIES': 3}"}, "E002", "'MAX_ATTEMPTS'"),
    "a name of the environment": (
        {"settings": "HARBOR_REFRESH = {'REFRESH_MAX_ATTEMPTS': 3}"},
        "E002",
        "'MAX_ATTEMPTS'",
    ),
    "a number out of range": ({"settings": "HARBOR_REFRESH = {'MAX_ATTEMPTS': 0}"}, "E003", "from 1 to 100"),
    "text for a number": ({"settings": "HARBOR_REFRESH = {'MAX_ATTEMPTS': 'seven'}"}, "E003", "a whole number"),
    "a name that is none any more": ({"settings": "HARBOR_REFRESH = {'CHUNK': 7}"}, "E002", "no setting 'CHUNK'"),
    "a setting of the service": ({"settings": "HARBOR_REFRESH = {'ATTACH': 'harbor'}"}, "E002", "'ATTACH'"),
    "an unknown choice": ({"settings": "HARBOR_REFRESH = {'STRATEGY': 'fast'}"}, "E003", "claim, scan"),
    "an address that is none": ({"settings": "HARBOR_REFRESH = {'REDIS_URL': 'unix:///r'}"}, "E006", "unix"),
    "no call of connect": ({"celery": ""}, "E007", "connect(app)"),
    "a queue on this machine by default": ({"broker": "amqp://broker.shop//"}, "W001", "REDIS_URL"),
    "rows that beat does not read": (
        {"apps": ["django.contrib.admin", "django_celery_beat"]},
        "W002",
        "PersistentScheduler",
    ),
    "a schedule that was replaced": (
        {
            "celery": JOINED + "\nassert app.conf.beat_schedule\napp.conf.beat_schedule = {}\n",
            "settings": "CELERY_BEAT_SCHEDULE = {'mine': {'task': 'shop.mine', 'schedule': 5}}",
        },
        "W003",
        "Beat does not send tasks.claim_batch",
    ),
    "prefetched messages": ({"settings": "CELERY_WORKER_PREFETCH_MULTIPLIER = 4"}, "W004", "is 4"),
    "clocks that change": ({"settings": "USE_TZ = False"}, "W007", "USE_TZ"),
}

#: What else follows from a fault.
FOLLOW = {"E007": ["W003"]}


def test_a_project_that_lacks_nothing_has_no_problem(tmp_path: Path) -> None:
    assert problems(Host(tmp_path, "none", celery=JOINED, settings=SOUND)) == {}


@pytest.mark.parametrize("installed", [(), ("harbor_refresh.executions",)])
def test_a_project_without_our_apps_is_told_what_to_add(installed: tuple[str, ...], tmp_path: Path) -> None:
    apps = ["django.contrib.admin", *installed]
    host = Host(tmp_path, "none", guest=False, apps=apps, celery=JOINED, settings=SOUND)
    todo = 'Add to the settings: INSTALLED_APPS += ["harbor_refresh.executions", "harbor_refresh.tasks"]'
    assert problems(host) == {"harbor_refresh.E011": ["The apps of Harbor Refresh are not installed.", todo]}
    done = host.run("-m", "django", "shell", "-c", "from harbor_refresh import start")
    error, note = done.stderr.splitlines()[-2:]
    assert error.endswith("isn't in an application in INSTALLED_APPS.")
    assert note == todo


def test_eager_mode_needs_no_broker_no_worker_and_no_beat(tmp_path: Path) -> None:
    lacking = """
        CELERY_TASK_ALWAYS_EAGER = True
        CELERY_WORKER_PREFETCH_MULTIPLIER = 4
        HARBOR_REFRESH = {"MAX_ATTEMPTS": 0}
    """
    assert list(problems(Host(tmp_path, "none", broker="sqs://here", settings=lacking))) == ["harbor_refresh.E003"]


@pytest.mark.slow
@pytest.mark.parametrize("fault", FAULTS)
def test_a_fault_is_found_by_its_id(fault: str, tmp_path: Path) -> None:
    options, number, text = FAULTS[fault]
    given = {"celery": JOINED} | options | {"settings": SOUND + options.get("settings", "")}
    found = problems(Host(tmp_path, "none", **given))
    assert f"harbor_refresh.{number}" in found
    assert set(found) <= {f"harbor_refresh.{one}" for one in (number, *FOLLOW.get(number, ()))}
    assert text in " ".join(map(str, found[f"harbor_refresh.{number}"]))


BACKEND = """
from django.db.backends.postgresql.base import *
from django.db.backends.postgresql import base


class DatabaseWrapper(base.DatabaseWrapper):
    '''As of PostGIS, a pool or a meter.'''
"""


@pytest.mark.parametrize(
    ("engine", "expected"), [("shop.backend", []), ("django.db.backends.sqlite3", ["harbor_tasks.E001"])]
)
def test_a_subclass_of_the_backend_is_postgresql(engine: str, expected: list[str], tmp_path: Path) -> None:
    files = {"backend__base": BACKEND, "backend____init__": ""}
    host = Host(tmp_path, "none", celery=JOINED, settings=SOUND, engine=engine, **files)
    assert list(problems(host)) == expected


@pytest.mark.parametrize("command", ["migrate", "test", "shell"])
def test_commands_that_make_no_checks_say_that_they_need_postgresql(command: str, tmp_path: Path) -> None:
    words = ["-c", "from harbor_refresh import TrackedExecution as E; E.objects.first()"]
    tests = "from django.test import TestCase\n\nclass Tests(TestCase):\n    def test_it(self):\n        pass\n"
    engine = "django.db.backends.sqlite3"
    host = Host(tmp_path, str(tmp_path / "db"), celery=JOINED, engine=engine, people__tests=tests)
    done = host.run("-m", "django", command, *(words if command == "shell" else ()))
    assert done.stderr.splitlines()[-1] == (
        "django.core.exceptions.ImproperlyConfigured: The database is django.db.backends.sqlite3; Harbor Refresh "
        'needs PostgreSQL. Write into the settings: DATABASES = {"default": {"ENGINE": '
        '"django.db.backends.postgresql", "NAME": "the name of your database"}}.'
    )
