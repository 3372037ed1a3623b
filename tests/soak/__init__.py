"""The soak: random faults and random traffic, then a quiet time, then a judge.

    make soak                                  # three seeds, a minute of faults each
    make soak SEEDS="4 5" SECONDS=120 ARGS="--without postgres_promote"

It is not part of `make test`; the judge itself is tested there (tests/unit/test_soak_judge.py). A seed fixes the
plan: which faults begin when and with which values, and what the traffic asks for in which order. How the two meet
is up to the machine.

| module     | owns                                                                                   |
| ---------- | -------------------------------------------------------------------------------------- |
| `__main__` | the command line: one seed after the other, each in a process of its own               |
| `seed`     | one seed: servers, faults and traffic, the quiet time, the verdict                     |
| `plan`     | what a seed means: the faults and their moments                                        |
| `faults`   | how each fault is made                                                                 |
| `traffic`  | what is asked of the public functions meanwhile                                        |
| `jobs`     | the jobs, which write down each of their runs                                          |
| `servers`  | Redis with snapshots and replicas, PostgreSQL with a standby, the workers and beats    |
| `proxy`    | one address for servers that change                                                    |
| `evidence` | what the judge reads: the runs, the changes of each task, what was done to processes   |
| `judge`    | what must hold, as functions over the evidence                                         |
| `history`  | all that is known of one job, in order of time                                         |
"""
