"""The base of ExecutionQueue, JobRecords and Counts: scripts over keys, run by one of two clients."""

from collections.abc import Callable
from typing import Any, ClassVar

from redis import Redis

from harbor_refresh.tasks import pacing
from harbor_refresh.tasks.conf import Refresh
from harbor_refresh.tasks.queue.connection import redis_errors_translated
from harbor_refresh.tasks.queue.keys import Keys
from harbor_refresh.tasks.queue.scripts import Scripts


class Verbs:
    scripts: ClassVar[Scripts]

    def __init__(
        self, conf: Refresh, patient: Redis, single: Redis, edited: Callable[[str], str] = lambda text: text
    ) -> None:
        """`edited` may change the text of each script: a test inserts its clock."""
        self.conf = conf
        self.keys = Keys(conf.key_prefix)
        self._redis = patient
        texts = {name: edited(self.scripts.source(name)) for name in self.scripts}
        self._patient = {name: patient.register_script(text) for name, text in texts.items()}
        self._single = {name: single.register_script(text) for name, text in texts.items()}
        self._ttl_us = round(pacing.NODE_TTL_SECONDS * 1_000_000)

    def _run(self, name: str, *items: Any, once: bool = False, **named: Any) -> Any:
        """Run a script with its named arguments, and the items that follow them."""
        taken = self.scripts[name]
        script = (self._single if once else self._patient)[name]
        with redis_errors_translated():
            return script(keys=self.keys.named(*taken.keys), args=taken.arguments(named, items))
