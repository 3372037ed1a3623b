"""Times and sizes of this app that no operator can choose well: constants, each with its reason.

`tasks/conf/pacing.py` holds those of the queue and the workers.
"""

import os
from typing import TypeVar

Number = TypeVar("Number", int, float)
#: The tests and the benchmarks set constants of the processes that they start, by variables of this prefix.
PRIVATE = "HARBOR_REFRESH_TEST_"


def paced(name: str, value: Number) -> Number:
    """Return the constant, unless a test or a benchmark has started this process with another value: a test that
    kills a worker cannot wait as long as a service does, and only the environment reaches each process. No
    setting: no page names it, and it changes without notice."""
    return type(value)(os.environ.get(f"{PRIVATE}{name}", value))


#: How long a request to a webhook may take in all. A receiver that answers first and works later needs less.
DELIVER_TIMEOUT_SECONDS = paced("DELIVER_TIMEOUT_SECONDS", 10.0)
#: After so long a delivery that was never accepted becomes a dead letter: a receiver may be down for a weekend.
DELIVER_MAX_AGE_SECONDS = 3 * 86_400.0
