"""What people do to a running service: actions on many executions, and paused queues; and the runs that deliver.

`pauses` has the verbs and the rows, `queue_names` knows which queues there are.
"""
