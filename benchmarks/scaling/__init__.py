"""Scale on paper: a simulation of the refresh on 1 to 1,000 workers and up to 1,000,000,000 executions.

`python -m benchmarks.scaling` prints the tables of docs/scaling.md. It starts no server and measures nothing:
what each step costs was measured once (`costs`), and a simulation (`drain`) lets ticks and processes compete
for Redis, PostgreSQL and the network of a fleet (`fleet`). `measured` compares it with the measured times, so a
wrong cost is found by a test.

| module | owns |
| --- | --- |
| `costs` | what a step costs, each with the measurement that it comes from |
| `fleet` | how many machines there are, and what they can do |
| `stations` | the clock of the simulation, and the queues before a processor or a disk |
| `drain` | ticks, messages, refreshes and completions, until a backlog is drained |
| `drained` | what a simulation found, and which part was the limit |
| `signs_of_life` | what Redis spends on heartbeats, questions for work and gossip |
| `limits`, `storage` | where each part ends; what the tables take on a disk, and how much of it is read |
| `measured` | the measured points, and how close the simulation must come |
| `page` | the tables of docs/scaling.md |
"""
