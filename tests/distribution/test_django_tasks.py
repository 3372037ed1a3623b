"""docs/howto/django_tasks.md, word for word: in Django 5.2 with django-tasks, and in the newest Django. Tasks are
rows of the database, as those of django-ox are."""

from pathlib import Path

import pytest

from tests import pages
from tests.distribution.fixtures import Make
from tests.distribution.project_pages import begin_project, postgres_of_the_test

pytestmark = pytest.mark.slow

#: The page's tests run jobs at once. Here a worker has them.
IN_A_WORKER = """
from datetime import timedelta

from django.tasks import TaskResultStatus
from django.test import TransactionTestCase
from django.tasks import task
from django.tasks.signals import task_finished
from harbor_refresh import Refused, TrackedExecution
from harbor_refresh.tasks_backend import ReturnValueNotKept
from harbor_refresh.testing import eager, worker
from shop.tasks import send_later, send_mail, sent


@task
def long(size):
    return "x" * size


told = []


def patience(exception, task_result):
    told.append((type(exception).__name__, task_result.status, len(task_result.errors), task_result.attempts))
    return 0.01 if isinstance(exception, OSError) else None


@task(max_attempts=3, backoff=patience, takes_context=True)
def flaky(context, failures, error="OSError"):
    if context.attempt <= failures:
        raise (OSError if error == "OSError" else ValueError)(f"no {context.attempt}")
    return context.attempt


@task(max_attempts=2, takes_context=True)
def hurried(context):
    raise OSError(f"no {context.attempt}")


@task(backoff=patience, takes_context=True)
def patient(context):
    raise OSError(f"no {context.attempt}")


@task(max_attempts=3, backoff=lambda exception, task_result: timedelta(seconds=1))
def wrongly_patient():
    raise OSError("no") from KeyError("why")


@task(max_attempts=3, backoff=lambda exception, task_result: {}["no such key"])
def broken():
    raise OSError("no") from KeyError("why")


class WorkerTest(TransactionTestCase):
    def test_tasks_run_in_a_worker_of_their_queues(self):
        sent.clear()
        with worker("mail"):
            results = [send_mail.enqueue("a@shop"), send_later.enqueue("b@shop"), send_mail.enqueue("nobody")]
            for execution in TrackedExecution.objects.order_by("pk"):
                execution.wait(timeout=300)
        for one in results:
            one.refresh()
        ok, failed = TaskResultStatus.SUCCESSFUL, TaskResultStatus.FAILED
        self.assertEqual([one.status for one in results], [ok, ok, failed])
        self.assertCountEqual(sent, ["a@shop", ("b@shop", 1)])
        self.assertEqual(results[1].return_value, None)
        self.assertIn("no address: nobody", results[2].errors[0].traceback)

    def test_each_task_has_a_retry_policy_of_its_own(self):
        # django-ox has one for the whole backend; here each task declares it, as Django proposes
        told.clear()
        finished = []

        def finish(task_result, **_):
            finished.append(task_result.id)

        task_finished.connect(finish)
        with worker():
            results = [flaky.enqueue(2), flaky.enqueue(9), flaky.enqueue(9, "ValueError")]
            results.append(hurried.using(priority=1).enqueue())
            for execution in TrackedExecution.objects.order_by("pk"):
                execution.wait(timeout=300)
        for one in results:
            one.refresh()
        ok, failed = TaskResultStatus.SUCCESSFUL, TaskResultStatus.FAILED
        self.assertEqual([one.status for one in results], [ok, failed, failed, failed])
        self.assertEqual([one.attempts for one in results], [3, 3, 1, 2])
        self.assertEqual(results[0].return_value, 3)
        self.assertIn("OSError: no 3", results[1].errors[0].traceback)
        self.assertIn("OSError: no 2", results[3].errors[0].traceback)
        again = [("OSError", failed, 1, 1), ("OSError", failed, 1, 2)]
        self.assertCountEqual(told, [*again, *again, ("ValueError", failed, 1, 1)])
        self.assertCountEqual(finished, [one.id for one in results])

    def test_a_task_with_a_backoff_begins_five_times(self):
        with eager():
            result = patient.enqueue()
        result.refresh()
        self.assertEqual((result.status, result.attempts), (TaskResultStatus.FAILED, 5))

    def test_a_task_with_a_broken_backoff_ends_with_its_own_error(self):
        finished = []

        def finish(task_result, **_):
            finished.append((task_result.id, task_result.status))

        task_finished.connect(finish)
        with worker():
            results = [wrongly_patient.enqueue(), broken.enqueue()]
            for execution in TrackedExecution.objects.order_by("pk"):
                execution.wait(timeout=300)
        for result, why in zip(results, ("countdown takes a number", "no such key"), strict=True):
            result.refresh()
            self.assertEqual((result.status, result.attempts), (TaskResultStatus.FAILED, 1))
            for said in ("KeyError: 'why'", "OSError: no", why):
                self.assertIn(said, result.errors[0].traceback)
        self.assertCountEqual(finished, [(one.id, one.status) for one in results])
        messages = [row.status_message for one in TrackedExecution.objects.all() for row in one.tasks.all()]
        self.assertEqual(messages, ["OSError: no"] * 2)

    def test_options_are_checked_where_the_task_is_declared(self):
        for name, value in {"max_attempts": 0, "backoff": 30}.items():
            with self.assertRaisesRegex(Refused, f"shop.test_worker.patient: {name} takes a"):
                task(**{name: value})(patient.func)

    def test_a_value_that_is_too_large_is_not_kept_and_the_reason_is_told(self):
        with eager():
            short, result = long.enqueue(10), long.enqueue(100_000)
        for one in (short, result):
            one.refresh()
        self.assertEqual(short.return_value, "x" * 10)
        self.assertEqual(result.status, TaskResultStatus.SUCCESSFUL)
        with self.assertRaisesRegex(ReturnValueNotKept, "it takes 100,002 bytes"):
            result.return_value

    async def test_the_framework_may_be_asynchronous(self):
        with eager():
            result = await send_later.aenqueue("c@shop")
        await result.arefresh()
        self.assertEqual(result.status, TaskResultStatus.SUCCESSFUL)
        self.assertGreaterEqual(result.finished_at, result.started_at)

    def test_signals_are_sent_and_unknown_results_are_told(self):
        from django.tasks.exceptions import TaskResultDoesNotExist
        from django.tasks.signals import task_enqueued, task_finished, task_started
        told = []

        def tell(signal, task_result, **_):
            told.append((task_result.id, task_result.status))

        for one in (task_enqueued, task_started, task_finished):
            one.connect(tell)
        with eager():
            result = send_mail.enqueue("a@shop")
        self.assertCountEqual([status for _, status in told], ["READY", "RUNNING", "SUCCESSFUL"])
        self.assertEqual({number for number, _ in told}, {result.id})
        with self.assertRaises(TaskResultDoesNotExist):
            send_mail.get_result("no such id")

    def test_arguments_that_are_no_json_are_refused_and_nothing_is_recorded(self):
        with self.assertRaises(TypeError):
            send_mail.enqueue(object())
        self.assertEqual(TrackedExecution.objects.count(), 0)
"""
PACKAGES = {"pinned": ("django-tasks==0.12.0",), "newest": ()}


@pytest.mark.parametrize("versions", PACKAGES)
def test_the_page_is_followed_word_for_word(
    environment: Make, template: str, tmp_path: Path, versions: str
) -> None:
    page = pages.read("docs/howto/django_tasks.md")
    made = environment("", versions, PACKAGES[versions])
    folder = tmp_path / "project"
    begin_project(folder, made)
    files = pages.files(page)
    with (folder / "shop/settings.py").open("a", encoding="utf-8") as settings:
        settings.write(files.pop("shop/settings.py"))
    files |= {"shop/test_worker.py": IN_A_WORKER}
    for name, text in files.items():
        older = text.replace("django.tasks", "django_tasks") if versions == "pinned" else text
        (folder / name).write_text(older, encoding="utf-8")
    (test,) = (line.split()[1:] for line in pages.lines(page))
    server = postgres_of_the_test()
    made.run(*test, "--pattern", "test*.py", cwd=folder, **server)
    made.run("manage.py", "check", cwd=folder, **server)
