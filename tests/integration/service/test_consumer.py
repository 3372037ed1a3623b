"""The consumer of our workers beside Celery's, when a process of its pool dies."""

import pytest

from tests.integration.service.programs_of_pools import said_by

#: A pool of one process, which dies, or seems to. The loop notices that, and cannot tell yet how the process has
#: ended, so the process stays in the pool. At this moment the connection breaks, and the loop begins again.
PROGRAM = """
import os, signal, sys
from time import monotonic

from celery import Celery
from celery.concurrency.prefork import TaskPool
from kombu.asynchronous import Hub, set_event_loop

from harbor_refresh.consumer import mend

app = Celery("a pool", set_as_current=False, fixups=[])
app.log.setup("ERROR")
set_event_loop(hub := Hub())
pool = TaskPool(1, app=app, initargs=(app, "host"), threads=False)
pool.start()
pool.register_with_event_loop(hub)
dead = pool._pool._pool[0]
if "dies" in sys.argv:
    os.kill(dead.pid, signal.SIGKILL)
pool._pool._untrack_child_process(dead, hub)

hub.reset()
if sys.argv[1] == "ours":
    mend(pool)
pool.register_with_event_loop(hub)
if "lives" in sys.argv:  # it is noticed that it dies later
    os.kill(dead.pid, signal.SIGKILL)
loop, until = hub.create_loop(), monotonic() + 60
while pool._pool._pool[:1] in ([], [dead]) and monotonic() < until:
    next(loop)
(other,) = pool._pool._pool
print("another process" if other.pid != dead.pid else "the dead one", flush=True)
pool.terminate()
os._exit(0)
"""


@pytest.mark.parametrize("process", ["dies", "lives"])
@pytest.mark.parametrize(
    ("consumer", "said"), [("ours", "another process"), ("Celery's", "ValueError: file descriptor is None")]
)
def test_a_pool_whose_process_died_while_the_connection_broke_gets_another_process(
    consumer: str, said: str, process: str
) -> None:
    """If the cases of Celery fail, Celery has mended it, and ours can go."""
    assert said in said_by(PROGRAM, consumer, process)
