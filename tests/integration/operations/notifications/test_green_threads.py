"""A process whose threads are greenlets sends no webhooks; what is due waits for another worker."""

import subprocess
import sys

import pytest

PATCHES = {"gevent": "from gevent import monkey; monkey.patch_all()", "threads": ""}
PROGRAM = """
import django
django.setup()
from harbor_refresh.executions.news.deliveries import answers
print(answers.can_send())
"""


@pytest.mark.parametrize(("pool", "can_send"), [("gevent", "False"), ("threads", "True")])
def test_only_a_process_with_real_threads_sends_webhooks(pool: str, can_send: str) -> None:
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", f"{PATCHES[pool]}\n{PROGRAM}"],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.stdout == f"{can_send}\n", done.stderr
