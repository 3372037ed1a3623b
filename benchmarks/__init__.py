"""`python -m benchmarks`: what a strategy costs, measured on real servers with real processes.

Owns the measuring and nothing of what is measured: it drives `tasks.strategies` and the Celery processes
from outside, as production does. It is no installed app.

| module | owns |
| --- | --- |
| `command` | the command line, and its options |
| `main` | the process that measures, with the settings of the measured servers |
| `experiments` | one module an experiment, and the list of them |
| `servers`, `existing_servers` | the servers of a run; a schema and a database on existing servers |
| `stale_executions`, `unfinished_executions` | the executions that are measured |
| `initial_state` | the state in which each pass begins |
| `node_pass`, `nodes`, `node`, `node_modes` | a pass with node processes; the processes; what runs in one |
| `celery_pass`, `job_passes`, `schedule` | a pass with Celery; passes of jobs; beat's schedule meanwhile |
| `cluster`, `ready_cluster`, `scheduled_app` | workers and a beat; the same, ready; workers without wake-up |
| `reporters`, `reporter` | processes that report; what runs in one |
| `empty_jobs`, `noop_app`, `group` | jobs that do nothing; a Celery app without the product; its group |
| `stock_app`, `lean_app` | workers with Celery's own consumer and transport; the same without events of tasks |
| `crash`, `limits` | the pass with a killed node; the two upper limits |
| `meters`, `cpu`, `watcher` | what the servers counted; processor time; when a status became true |
| `figures`, `percentiles`, `machine` | the arithmetic; the machine and versions |
| `rows`, `screen` | one measured row and its JSON; everything that is shown |
"""
