"""The soak: random faults and random traffic, then a quiet time, then a judge.

    make soak                                  # three seeds, a minute of faults each
    make soak SEEDS="4 5" MINUTES=2 ARGS="--without postgres_promote"
    make soak SEED=6 MINUTES=30

`make test` does not run it, but tests the judge (tests/unit/test_soak_judge.py). A seed fixes which faults begin
when and with which values, and the order of the traffic's calls. How faults and calls coincide depends on the
machine.

| module     | owns                                                                                   |
| ---------- | -------------------------------------------------------------------------------------- |
| `__main__` | the command line: run the seeds one after the other, each in its own process           |
| `seed`     | one seed: servers, faults and traffic, the quiet time, the verdict                     |
| `plan`     | the plan of a seed: the faults and their times                                         |
| `faults`   | how to make each fault                                                                 |
| `traffic`  | the calls of the public functions during the faults                                    |
| `jobs`     | the jobs, which record each of their runs                                              |
| `servers`  | Redis with snapshots and replicas, PostgreSQL with a standby, the workers and beats    |
| `proxy`    | a fixed address for servers that change                                                |
| `evidence` | what the judge reads: the runs, the changes of each task, the faults of processes      |
| `judge`    | the conditions that must hold, as functions over the evidence                          |
"""
