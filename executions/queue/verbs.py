"""What ExecutionQueue, JobRecords and Counts are made of: scripts over keys, run by one of two clients."""

from collections.abc import Callable
from typing import Any

from redis import Redis

from executions.conf import Refresh
from executions.queue import scripts
from executions.queue.connection import redis_errors_translated
from executions.queue.keys import Keys


class Verbs:
    def __init__(
        self,
        conf: Refresh,
        patient: Redis,
        single: Redis,
        source: Callable[[str], str] = scripts.source,
    ) -> None:
        self.conf = conf
        self.keys = Keys(conf.key_prefix)
        self._redis = patient
        self._patient = {name: patient.register_script(source(name)) for name in scripts.KEYS}
        self._single = {name: single.register_script(source(name)) for name in scripts.KEYS}
        self._ttl_us = round(conf.node_ttl * 1_000_000)

    def _run(self, name: str, *args: Any, once: bool = False) -> Any:
        script = (self._single if once else self._patient)[name]
        with redis_errors_translated():
            return script(keys=self.keys.named(*scripts.KEYS[name]), args=args)
