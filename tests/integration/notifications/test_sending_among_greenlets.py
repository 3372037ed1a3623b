"""A receiver that hangs holds up its own request: no other greenlet of a worker, and not beyond the time limit."""

import os
import subprocess
import sys

import pytest

PATCHES = {
    "gevent": "from gevent import monkey; monkey.patch_all()",
    "threads": "",
}
PROGRAM = """
import socket, threading, time
import django; django.setup()
from ipaddress import ip_network
from harbor_refresh.executions.deliveries import requests
from harbor_refresh.executions.deliveries.messages import Message
from harbor_refresh.executions.deliveries.network import CheckedNetwork, Resolver

server = socket.create_server(("127.0.0.1", 0))
pool = requests.connections(CheckedNetwork(Resolver(), [ip_network("127.0.0.1/32"), ip_network("::1/128")]))
hanging = f"http://localhost:{server.getsockname()[1]}/"
told = []


def send():
    told.append(requests.send(pool, Message(hanging, {}, b"x"), 1.0).error)


began = time.monotonic()
threads = [threading.Thread(target=send) for _ in range(5)]
for one in threads:
    one.start()
ticks = 0
while not told:
    time.sleep(0.01)
    ticks += 1
for one in threads:
    one.join()
print(set(told), len(told), ticks > 10, time.monotonic() - began < 30)
"""


@pytest.mark.parametrize("pool", PATCHES)
def test_while_a_receiver_hangs_other_threads_or_greenlets_go_on(pool: str) -> None:
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", f"{PATCHES[pool]}\n{PROGRAM}"],
        env={**os.environ, "DJANGO_SETTINGS_MODULE": "settings.test"},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.stdout == "{'no answer within 1 s'} 5 True True\n", done.stderr
