"""A whole Harbor Refresh on one machine: embedded servers, and the supervisor behind `make up`.

This package owns what a newcomer and the tests need and production does not: a PostgreSQL and a Valkey started
from wheels, and the processes around them. Only the bench and the tests import it. It must not touch the
domain: it starts `manage.py` and Celery as a user would.

| module | owns |
| --- | --- |
| `servers` | the public names: `EmbeddedPostgres`, `EmbeddedRedis`, `LocalError` |
| `postgres`, `redis`, `server` | the two servers, and what they share |
| `binaries`, `accounts` | which program to run, and as which account |
| `ports`, `process` | free ports; processes that end with their parent |
| `checkout`, `lock`, `logs` | what `make up` keeps in `.local/` |
| `services`, `child`, `keeper` | the processes, one running process, keeping all of them running |
| `running` | how a command beside `make up` finds its servers |
| `startup`, `stop_signals`, `screen` | the start-up steps, the signals to end, every word that is shown |
| `supervisor` | `make up` from start to end |
"""
