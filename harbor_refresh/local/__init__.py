"""A whole Harbor Refresh on one machine: embedded servers, and the supervisor behind `make up`.

This package owns what a newcomer and the tests need and production does not: a PostgreSQL and
a Valkey started from wheels, and the processes around them. Nothing outside it but the bench and
the tests imports it, and it must not touch the domain: it starts `manage.py` and Celery as anyone would.

| module | owns |
| --- | --- |
| `servers` | the public names: `EmbeddedPostgres`, `EmbeddedRedis`, `LocalError` |
| `postgres`, `redis`, `server` | the two servers, and what they share |
| `binaries`, `accounts` | which program to run, and as whom |
| `ports`, `process` | free ports; processes that end with their parent |
| `checkout`, `lock`, `logs` | what `make up` keeps in `.local/` |
| `services`, `child`, `keeper` | what runs, one running process, keeping all of them running |
| `startup`, `signals`, `screen` | the steps before, the wish to end, every word that is shown |
| `supervisor` | `make up` from its first line to its last |
"""
