"""The loop of the sender among greenlets: none of them sees it, and each may run a loop of its own."""

import subprocess
import sys

import pytest

PATCHES = {
    "gevent": "from gevent import monkey; monkey.patch_all()",
    "threads": "",
}
PROGRAM = """
import asyncio, threading, time
from harbor_refresh.executions.deliveries import greenlet_loop

seen, begun, ended = [], threading.Event(), []


async def serve():
    begun.set()
    for _ in range(20):
        await asyncio.sleep(0.01)
        assert asyncio.get_running_loop() is asyncio.current_task().get_loop()
    ended.append("the loop")


async def job(name):
    for _ in range(10):
        await asyncio.sleep(0.01)
    ended.append(name)


def look(name):
    begun.wait()
    for _ in range(10):
        seen.append(asyncio._get_running_loop())
        time.sleep(0.01)
    greenlet_loop.run(job(name))
    seen.append(asyncio._get_running_loop())


threads = [threading.Thread(target=greenlet_loop.run, args=[serve()])]
threads += [threading.Thread(target=look, args=[name]) for name in ("a", "b")]
for one in threads:
    one.start()
for one in threads:
    one.join()
print(sorted(ended), set(seen))
"""


@pytest.mark.parametrize("pool", PATCHES)
def test_no_greenlet_sees_the_loop_of_another_and_each_may_run_one(pool: str) -> None:
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", f"{PATCHES[pool]}\n{PROGRAM}"],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.stdout == "['a', 'b', 'the loop'] {None}\n", done.stderr
