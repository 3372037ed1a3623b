"""The names of modules in a file move below the namespace, and nothing else of the file changes."""

from collections.abc import Callable

import pytest

from distribution.errors import Refused
from distribution.modules import Modules
from distribution.rewriting import Rewriting

MODULES = Modules(
    defined={
        "executions": frozenset(),
        "executions.conf": frozenset({"SETTINGS"}),
        "tasks": frozenset(),
        "tasks.actors": frozenset(),
        "tasks.beat": frozenset({"PatientScheduler"}),
        "tasks.sweep": frozenset({"sweep"}),
        "harbor_refresh.client": frozenset({"Client"}),
    },
    left_out=frozenset({"settings", "settings.base", "harbor_refresh.celery", "examples", "examples.mirror"}),
    messages=frozenset({"tasks.sweep"}),
)


@pytest.fixture
def rewrite() -> Callable[[str], str]:
    return lambda text: Rewriting(MODULES).rewrite(text.encode()).decode()


@pytest.mark.parametrize(
    ("written", "expected"),
    [
        ("from tasks import actors", "from harbor_refresh.tasks import actors"),
        ("from executions.conf import SETTINGS", "from harbor_refresh.executions.conf import SETTINGS"),
        ("import tasks.actors", "import harbor_refresh.tasks.actors"),
        ("import tasks.beat as b, os", "import harbor_refresh.tasks.beat as b, os"),
        ("if a: import tasks.actors; from tasks import beat", None),
        ("from tasksy import a", "from tasksy import a"),
        ("from harbor_refresh.client import Client", "from harbor_refresh.client import Client"),
        ("tasks = [1]; tasks.sort()", "tasks = [1]; tasks.sort()"),
        # texts
        ("a = 'tasks.beat:PatientScheduler'", "a = 'harbor_refresh.tasks.beat:PatientScheduler'"),
        ("a = 'executions.conf.SETTINGS'", "a = 'harbor_refresh.executions.conf.SETTINGS'"),
        ("a = 'set X = \"tasks.beat\", and go on'", "a = 'set X = \"harbor_refresh.tasks.beat\", and go on'"),
        ("a = ('é ü' # é tasks.x\n  'ö tasks.beat')", None),
        ("a: 'tasks.beat.PatientScheduler'", "a: 'harbor_refresh.tasks.beat.PatientScheduler'"),
        ("patterns = [include('tasks.beat')]", "patterns = [include('harbor_refresh.tasks.beat')]"),
        ("x = import_string('tasks.sweep')", "x = import_string('harbor_refresh.tasks.sweep')"),
        (
            "app.autodiscover_tasks(['tasks'], related_name='actors')",
            "app.autodiscover_tasks(['harbor_refresh.tasks'], related_name='actors')",
        ),
        (
            "class C(AppConfig):\n    name = 'tasks'\n    label = 'tasks'",
            "class C(AppConfig):\n    name = 'harbor_refresh.tasks'\n    label = 'tasks'",
        ),
        ("text('tasks', 'tasks')", "text('harbor_refresh.tasks', 'tasks')"),
        # names of messages, words, files, and what is compared with itself alone
        ("send('tasks.sweep')", "send('tasks.sweep')"),
        ("a = 'the task tasks.sweep is late'", "a = 'the task tasks.sweep is late'"),
        ("s.connect(f, dispatch_uid='tasks.nothing')", "s.connect(f, dispatch_uid='tasks.nothing')"),
        ("a = {'tasks': 1, 'executions': 2}", "a = {'tasks': 1, 'executions': 2}"),
        ("a = 'tasks/admin/queue.html'", "a = 'tasks/admin/queue.html'"),
        ("a = 'harbor_executions.execution'", "a = 'harbor_executions.execution'"),
        ("a = 'no more tasks.'", "a = 'no more tasks.'"),
        ("a = f'{n} tasks. {m} executions.'", "a = f'{n} tasks. {m} executions.'"),
        ("a = 'harbor_refresh.ticks'", "a = 'harbor_refresh.ticks'"),
        # prose
        ('"""See tasks.nothing."""', '"""See tasks.nothing."""'),
        ("a = 1  # tasks.beat decides", "a = 1  # tasks.beat decides"),
    ],
)
def test_a_name_of_a_module_moves_and_nothing_else(
    rewrite: Callable[[str], str], written: str, expected: str | None
) -> None:
    expected = expected or {
        "if a: import tasks.actors; from tasks import beat": (
            "if a: import harbor_refresh.tasks.actors; from harbor_refresh.tasks import beat"
        ),
        "a = ('é ü' # é tasks.x\n  'ö tasks.beat')": "a = ('é ü' # é tasks.x\n  'ö harbor_refresh.tasks.beat')",
    }.get(written)
    assert rewrite(written) == expected


def test_a_file_keeps_its_comments_and_the_numbers_of_its_lines(rewrite: Callable[[str], str]) -> None:
    before = (
        '"""É."""\n\nfrom tasks import (  # why\n    beat,\n)\n\ndef é():\n    return "ü", "tasks.beat"  # é\r\n'
    )
    after = rewrite(before)
    assert after == before.replace("from tasks", "from harbor_refresh.tasks").replace(
        '"tasks.beat"', '"harbor_refresh.tasks.beat"'
    )


@pytest.mark.parametrize(
    ("written", "reason"),
    [
        (
            "a = 1\nb = 'tasks.nothing'",
            "2: looks like the name of a module",
        ),
        ("a = 'executions.conf.NOTHING'", "1: looks like the name of a module"),
        ("a = 'tasks.' + name", "1: the beginning of a name of a module"),
        ("a = f'tasks.{name}'", "1: the beginning of a name of a module"),
        ("a = 'tasks.%s' % name", "1: the beginning of a name of a module"),
        ("a = 'at tasks.beat.{}'.format(name)", "1: the beginning of a name of a module"),
        ("a = f'{b} tasks.beat'", "1: the name of a module in an f-string"),
        ("a = ('tasks.'\n 'beat')", "1: a name of a module that is written in parts"),
        ("a = '\\x74asks.beat'", "1: a name of a module that is written in parts"),
        ("import tasks.beat\ntasks.beat.x()", "1: `import tasks.beat` binds tasks, which is used"),
        ("from tasks \\\n import beat\nfrom \\\n tasks import beat", "3: an import whose module does not follow"),
        ("from settings import base", "1: imports settings, which the wheel does not carry"),
        ("import settings.base", "1: imports settings.base, which the wheel does not carry"),
        ("from harbor_refresh import celery", "1: imports harbor_refresh.celery, which the wheel does not carry"),
        ("os.environ['X'] = 'settings.base'", "1: names settings.base, which the wheel does not carry"),
        ("a = 'harbor_refresh.celery.app'", "1: names harbor_refresh.celery.app, which the wheel does not carry"),
    ],
)
def test_what_is_not_clear_ends_the_build(rewrite: Callable[[str], str], written: str, reason: str) -> None:
    with pytest.raises(Refused) as refused:
        rewrite(written)
    assert str(refused.value).startswith(reason)
    assert len(str(refused.value).splitlines()) in (1, 2)
