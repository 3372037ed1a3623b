"""`make test-stock`: the tests on the PostgreSQL and the Redis of the distribution, as users have them.

As root, it installs missing servers. The distribution's PostgreSQL compiles expensive statements (JIT), which the
wheel's PostgreSQL cannot do; tests/conftest.py fails a run in which it compiled one of ours.
"""

import os
import shutil
import subprocess
import sys

from tests.programs import install, packaged_postgres

USUAL = ["-n", "auto", "--dist", "loadfile", "--no-loadscope-reorder"]


def main(words: list[str]) -> None:
    if not packaged_postgres() or not shutil.which("redis-server"):
        install("postgresql redis-server")
    postgres, redis = packaged_postgres(), shutil.which("redis-server")
    if not postgres or not redis:
        sys.exit("The servers of the distribution are missing: apt-get install postgresql redis-server")
    os.environ |= {"POSTGRES_PROGRAMS": str(postgres[0]), "REDIS_PROGRAM": redis}
    sys.exit(subprocess.run([sys.executable, "-m", "pytest", *(words or USUAL)], check=False).returncode)


if __name__ == "__main__":
    main(sys.argv[1:])
