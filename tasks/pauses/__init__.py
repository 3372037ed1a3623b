"""Pauses: which queues of the broker are paused, and how the workers keep to it.

`pauses` has the verbs and the rows, `queue_names` knows which queues there are, `held_queues` is the part of a
worker. Refreshing is paused before the claim (tasks/pipeline/dispatcher.py).
"""
