"""The hint and the muscle: the queue in Redis, the pipeline that works it off, tracked jobs, the older designs.

The Celery tasks stand here, one actor a file, each a few lines; `actors` lists them, and `tick` is what the
scheduled ones have in common. `heartbeat` gives the signs of life of a process; `schedule` keeps beat's rows.
"""
