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
from django.tasks import TaskResultStatus
from django.test import TransactionTestCase
from django.tasks import task
from harbor_refresh import TrackedExecution
from harbor_refresh.tasks_backend import ReturnValueNotKept
from harbor_refresh.testing import eager, worker
from shop.tasks import send_later, send_mail, sent


@task
def long(size):
    return "x" * size


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
