"""Invented runners: what `python -m examples.simulation` plans, sends, waits for and checks.

| module | owns |
| --- | --- |
| `plan` | what each runner will report, from a seed alone |
| `prediction` | the status each execution of a plan must have in the end, computed without the database |
| `runners` | threads that carry out a plan through the use cases |
| `queue_state` | waiting until the queue is empty, and a description of it |
| `verdict` | whether K1 to K4 hold and every status is the predicted one |
| `demo` | slow traffic without an end, for `make up` |
| `command`, `options`, `screen` | the command line, its options and its output |
"""
