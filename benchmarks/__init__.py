"""`manage.py bench`: what a strategy costs, measured on real servers with real processes.

Owns the measuring and nothing of what is measured: it drives `executions.strategies` and the Celery crew
as production does, from outside. Nothing but `management/commands/bench.py` imports it.

| module | owns |
| --- | --- |
| `experiments` | which experiments there are |
| `main` | the engine: a process that has the settings of the measured servers |
| `ground`, `given`, `about` | the servers of a run; a corner of servers that were given; the machine in words |
| `data` | the rows, and making them stale again |
| `nodes`, `node` | node processes, and what runs in one |
| `crew` | Celery workers and a beat |
| `meters`, `cpu` | what the servers counted; where the processor's time went |
| `rows`, `screen` | one measured row and its JSON; everything that is shown |
| `strategies`, … | one experiment each |
"""
