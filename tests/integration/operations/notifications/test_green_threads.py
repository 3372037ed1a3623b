"""A process whose threads are greenlets sends no webhooks; what is due waits for another worker."""

import sys

import pytest

from tests.terminal import ran

PATCHES = {"gevent": "from gevent import monkey; monkey.patch_all()", "threads": ""}
PROGRAM = """
import django
django.setup()
from harbor_refresh.executions.news.deliveries import answers
print(answers.can_send())
"""


@pytest.mark.parametrize(("pool", "can_send"), [("gevent", "False"), ("threads", "True")])
def test_only_a_process_with_real_threads_sends_webhooks(pool: str, can_send: str) -> None:
    done = ran([sys.executable, "-W", "ignore", "-c", f"{PATCHES[pool]}\n{PROGRAM}"])
    assert done.stdout == f"{can_send}\n", done.stderr
