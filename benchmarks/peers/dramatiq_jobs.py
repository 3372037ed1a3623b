"""The actor of dramatiq, with Redis as its broker, its results and its barriers."""

import os

import dramatiq
from dramatiq.brokers.redis import RedisBroker
from dramatiq.middleware import GroupCallbacks
from dramatiq.rate_limits.backends import RedisBackend as Barriers
from dramatiq.results import Results
from dramatiq.results.backends import RedisBackend

from benchmarks.peers import effects

url = os.environ.get("REDIS_URL", "")
broker = RedisBroker(url=url)
broker.add_middleware(Results(backend=RedisBackend(url=url)))
broker.add_middleware(GroupCallbacks(Barriers(url=url)))
dramatiq.set_broker(broker)


@dramatiq.actor(store_results=True)
def noted(number: int) -> bool:
    effects.note(number)
    return True


@dramatiq.actor(store_results=True)
def ended() -> bool:
    return True
