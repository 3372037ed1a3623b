"""Runners that do not exist: what `manage.py simulate` plans, sends, waits for and checks.

| module   | owns                                                                            |
| -------- | ------------------------------------------------------------------------------- |
| `plan`   | what each runner will do, from a seed alone; touches nothing                     |
| `oracle` | what must come of a plan, worked out without the database                        |
| `crowd`  | threads that carry out a plan through the use cases                              |
| `drain`  | waiting until the queue is empty                                                |
| `verdict`| whether K1 to K4 hold, and every end is what the oracle said                     |
| `demo`   | gentle traffic without an end, for `make up`                                     |
| `options`, `screen` | what a person types, and what a person sees                           |
"""
