"""A result that is read half beside Celery's own reading, when the connection breaks or the process dies."""

import pytest

from tests.integration.service.programs_of_pools import said_by

#: A pool of one process. Half of a result is written into its pipe and read. The rest is written, unless the
#: process dies before it. Then the loop begins again. The next job must succeed.
PROGRAM = """
import operator, os, pickle, signal, struct, sys
from time import monotonic, sleep

from celery import Celery
from celery.concurrency.prefork import TaskPool
from kombu.asynchronous import Hub, set_event_loop

from harbor_refresh.consumer import keep_half_results as keep

app = Celery("a pool", set_as_current=False, fixups=[])
app.log.setup("ERROR")
set_event_loop(hub := Hub())
pool = TaskPool(1, app=app, initargs=(app, "host"), threads=False)
pool.start()
processes = pool._pool


def begin():
    if sys.argv[1] == "ours":
        keep(pool)
    pool.register_with_event_loop(hub)
    return hub.create_loop()


def turn(loop, is_over):
    until = monotonic() + 120
    while not is_over():
        assert monotonic() < until
        next(loop)


loop = begin()
(first,) = processes._pool
turn(loop, lambda: processes._fileno_to_inq)
unknown_job, filler = 1_000_000, b"\\0\\0\\0\\x08"
body = pickle.dumps((1, (unknown_job, 0, (True, filler * 100), 0)))
result = struct.pack(">I", len(body)) + body
half = result.index(filler, 200)
pipe = first.outq._writer.fileno()
os.write(pipe, result[:half])
turn(loop, lambda: any(hasattr(how[0], "send") for how in hub.readers.values()))
if sys.argv[2] != "dies before the rest":
    os.write(pipe, result[half:])
hub.reset()
if sys.argv[2] != "lives":
    os.kill(first.pid, signal.SIGKILL)
    while first in processes._pool:
        processes.maintain_pool()
        sleep(0.01)
loop = begin()
results = []
turn(loop, lambda: processes._fileno_to_inq)
processes.apply_async(operator.mul, (2, 3), callback=results.append)
turn(loop, lambda: results)
print("the next result:", results, flush=True)
pool.terminate()
os._exit(0)
"""


@pytest.mark.parametrize("process", ["lives", "dies"])
@pytest.mark.parametrize(("reader", "said"), [("ours", "the next result: [6]"), ("Celery's", "UnpicklingError")])
def test_a_worker_that_has_read_half_a_result_goes_on(reader: str, said: str, process: str) -> None:
    """If the cases of Celery fail, Celery has mended it, and ours can go."""
    assert said in said_by(PROGRAM, reader, process)


def test_half_a_result_without_its_rest_is_no_part_of_the_next_one() -> None:
    assert "the next result: [6]" in said_by(PROGRAM, "ours", "dies before the rest")
